/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor descriptor, dtype names, DLPack in and out, and tensors in memory of the library.
 * Numbers of devices are those of DLPack, numbers of dtypes our own. */
#ifndef SHARDWRIGHT_TENSOR_H
#define SHARDWRIGHT_TENSOR_H

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* Flags of shw_tensor: refuse to write into it; page-locked host memory; sub-byte elements take a
 * whole byte each.
 * Since: 0.1 unstable */
#define SHW_TENSOR_READ_ONLY 1
#define SHW_TENSOR_PINNED 2
#define SHW_TENSOR_SUBBYTE_PADDED 4

/* Where the bytes of a tensor lie. 0 is read as CPU.
 * Since: 0.1 unstable */
enum {
  SHW_DEVICE_CPU = 1,
  SHW_DEVICE_CUDA = 2,
  SHW_DEVICE_CUDA_HOST = 3,
  SHW_DEVICE_OPENCL = 4,
  SHW_DEVICE_VULKAN = 7,
  SHW_DEVICE_METAL = 8,
  SHW_DEVICE_VPI = 9,
  SHW_DEVICE_ROCM = 10,
  SHW_DEVICE_ROCM_HOST = 11,
  SHW_DEVICE_EXTENSION = 12,
  SHW_DEVICE_CUDA_MANAGED = 13,
  SHW_DEVICE_ONEAPI = 14,
  SHW_DEVICE_WEBGPU = 15,
  SHW_DEVICE_HEXAGON = 16,
  SHW_DEVICE_MAIA = 17,
  SHW_DEVICE_TRAINIUM = 18
};

/* What an element is, by torch's names. The same numbers stand in files, in plan buffers and in all
 * languages; 0 is no dtype. Elements below a byte are packed, the first in the low bits.
 * Since: 0.1 unstable */
enum {
  SHW_BOOL = 1,
  SHW_INT8 = 2,
  SHW_INT16 = 3,
  SHW_INT32 = 4,
  SHW_INT64 = 5,
  SHW_UINT8 = 6,
  SHW_UINT16 = 7,
  SHW_UINT32 = 8,
  SHW_UINT64 = 9,
  SHW_FLOAT16 = 10,
  SHW_BFLOAT16 = 11,
  SHW_FLOAT32 = 12,
  SHW_FLOAT64 = 13,
  SHW_COMPLEX32 = 14,
  SHW_COMPLEX64 = 15,
  SHW_COMPLEX128 = 16,
  SHW_FLOAT8_E3M4 = 17,
  SHW_FLOAT8_E4M3 = 18,
  SHW_FLOAT8_E4M3B11FNUZ = 19,
  SHW_FLOAT8_E4M3FN = 20,
  SHW_FLOAT8_E4M3FNUZ = 21,
  SHW_FLOAT8_E5M2 = 22,
  SHW_FLOAT8_E5M2FNUZ = 23,
  SHW_FLOAT8_E8M0FNU = 24,
  SHW_FLOAT6_E2M3FN = 25,
  SHW_FLOAT6_E3M2FN = 26,
  SHW_FLOAT4_E2M1FN = 27,
  SHW_INT4 = 28,
  SHW_UINT4 = 29
};

/* Describes a tensor of the host (96 bytes). The first element lies at data + byte_offset;
 * `byte_size` (0 = as shape and strides say) is what may be touched from there. `strides` are in
 * elements, NULL = row-major. `dtype` is one of SHW_BOOL to SHW_UINT4. `shape` and `strides` are
 * borrowed for the call. `stream` is the producer's stream, 0 = data ready. `name_index` belongs to
 * the call.
 * Since: 0.1 unstable */
typedef struct shw_tensor {
  uint32_t struct_size;
  uint32_t flags;
  void* data;
  uint64_t byte_offset;
  uint64_t byte_size;
  int32_t device_type;
  int32_t device_id;
  int32_t dtype;
  int32_t ndim;
  const int64_t* shape;
  const int64_t* strides;
  uint64_t stream;
  uint64_t name_index;
  uint64_t reserved0;
  uint64_t reserved1;
} shw_tensor;

/* Byte size of the oldest published shw_tensor.
 * Since: 0.1 unstable */
#define SHW_TENSOR_SIZE_V1 96

#define SHW_TENSOR_INIT {sizeof(shw_tensor), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* A dense row-major host tensor in memory of the library.
 * Since: 0.1 unstable */
typedef struct shw_owned_tensor shw_owned_tensor;

/* Fills a descriptor with zeros and its size, as SHW_TENSOR_INIT does. NULL is skipped.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_tensor_init(shw_tensor* tensor, uint32_t struct_size) SHW_NOEXCEPT;

/* Checks a descriptor: size, flags, dtype, device, shape, strides, extents, addresses.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_tensor_check(const shw_tensor* tensor,
                                                 shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Describes a versioned DLPack tensor; nothing is consumed, `out` borrows from `managed`.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_tensor_from_dlpack(const struct DLManagedTensorVersioned* managed, shw_tensor* out,
                       shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Describes a legacy DLPack tensor; nothing is consumed, `out` borrows from `managed`.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_tensor_from_dlpack_legacy(const struct DLManagedTensor* managed, shw_tensor* out,
                              shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Static name of a dtype, such as "bfloat16"; "" when there is no such dtype.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_dtype_name(int32_t dtype) SHW_NOEXCEPT;

/* Finds the dtype of a name.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_dtype_parse(const char* name, int32_t* out,
                                                shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Bits of one element, 4 to 128; 0 when there is no such dtype.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint32_t shw_dtype_bits(int32_t dtype) SHW_NOEXCEPT;

/* Bytes that `element_count` packed elements take, rounded up; 0 for an unknown dtype or overflow.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_dtype_byte_size(int32_t dtype, uint64_t element_count) SHW_NOEXCEPT;

/* Dtype of a DLDataType of DLPack, given as code + 256 * bits + 65536 * lanes, which are its bytes
 * in memory; 0 when there is none: opaque elements, lanes other than 1, unknown codes.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API int32_t shw_dtype_from_dlpack(uint32_t type) SHW_NOEXCEPT;

/* DLDataType of a dtype, as shw_dtype_from_dlpack takes it; 0 when there is no such dtype.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint32_t shw_dtype_to_dlpack(int32_t dtype) SHW_NOEXCEPT;

/* Makes a host tensor filled with zeros; its first byte is aligned to 4096 bytes.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_owned_tensor_create(int32_t dtype,
                                                        const int64_t* SHW_NULLABLE shape,
                                                        int32_t ndim, shw_owned_tensor** out,
                                                        shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Describes the tensor; `out` borrows data and shape until the tensor is released.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_owned_tensor_describe(
    const shw_owned_tensor* tensor, shw_tensor* out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Exports the tensor as versioned DLPack; it keeps the bytes alive until its deleter is called,
 * which may happen on any thread and after the release of this handle.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_owned_tensor_dlpack(const shw_owned_tensor* tensor,
                                                        struct DLManagedTensorVersioned** out,
                                                        shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Exports the tensor as legacy DLPack, otherwise as shw_owned_tensor_dlpack.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_owned_tensor_dlpack_legacy(const shw_owned_tensor* tensor, struct DLManagedTensor** out,
                               shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the handle. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: tensor
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_owned_tensor_release(shw_owned_tensor* SHW_NULLABLE tensor) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_TENSOR_H */

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor descriptor, dtype names, DLPack in and out, and tensors in memory of the library.
 * Numbers of devices and dtype codes are those of DLPack. */
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

/* What the bits of an element mean.
 * Since: 0.1 unstable */
enum {
  SHW_DTYPE_INT = 0,
  SHW_DTYPE_UINT = 1,
  SHW_DTYPE_FLOAT = 2,
  SHW_DTYPE_OPAQUE = 3,
  SHW_DTYPE_BFLOAT = 4,
  SHW_DTYPE_COMPLEX = 5,
  SHW_DTYPE_BOOL = 6,
  SHW_DTYPE_FLOAT8_E3M4 = 7,
  SHW_DTYPE_FLOAT8_E4M3 = 8,
  SHW_DTYPE_FLOAT8_E4M3B11FNUZ = 9,
  SHW_DTYPE_FLOAT8_E4M3FN = 10,
  SHW_DTYPE_FLOAT8_E4M3FNUZ = 11,
  SHW_DTYPE_FLOAT8_E5M2 = 12,
  SHW_DTYPE_FLOAT8_E5M2FNUZ = 13,
  SHW_DTYPE_FLOAT8_E8M0FNU = 14,
  SHW_DTYPE_FLOAT6_E2M3FN = 15,
  SHW_DTYPE_FLOAT6_E3M2FN = 16,
  SHW_DTYPE_FLOAT4_E2M1FN = 17
};

/* Describes a tensor of the host (96 bytes). The first element lies at data + byte_offset;
 * `byte_size` (0 = as shape and strides say) is what may be touched from there. `strides` are in
 * elements, NULL = row-major. `dtype_lanes` 0 is read as 1. `shape` and `strides` are borrowed for
 * the call. `stream` is the producer's stream, 0 = data ready. `name_index` belongs to the call.
 * Since: 0.1 unstable */
typedef struct shw_tensor {
  uint32_t struct_size;
  uint32_t flags;
  void* data;
  uint64_t byte_offset;
  uint64_t byte_size;
  int32_t device_type;
  int32_t device_id;
  uint8_t dtype_code;
  uint8_t dtype_bits;
  uint16_t dtype_lanes;
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

#define SHW_TENSOR_INIT {sizeof(shw_tensor), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

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
SHW_API const char* shw_dtype_name(uint8_t code, uint8_t bits) SHW_NOEXCEPT;

/* Finds the dtype of a name; `out` receives code + 256 * bits.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_dtype_parse(const char* name, uint32_t* out,
                                                shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Bytes that `element_count` packed elements take, rounded up; 0 for an unknown dtype or overflow.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_dtype_byte_size(uint8_t code, uint8_t bits,
                                     uint64_t element_count) SHW_NOEXCEPT;

/* Makes a host tensor filled with zeros; its first byte is aligned to 4096 bytes.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_owned_tensor_create(uint8_t dtype_code, uint8_t dtype_bits,
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

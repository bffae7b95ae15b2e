/* SPDX-License-Identifier: Apache-2.0
 *
 * Binary layout of DLPack 1.x as the Python module exchanges it: tensors in capsules, and the C
 * exchange table that a tensor type offers as __dlpack_c_exchange_api__. Numbers of devices are
 * those of shardwright/tensor.h; shw_dtype_from_dlpack gives the dtype. Source of the layout:
 * DLPack 1.3, dlpack.h. */
#ifndef SHW_PY_DLPACK_ABI_H
#define SHW_PY_DLPACK_ABI_H

#include <stdint.h>

typedef struct {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  uint32_t type; /* DLDataType: code, bits and lanes, as shw_dtype_from_dlpack takes it */
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} shw_dl_tensor;

typedef struct DLManagedTensor {
  shw_dl_tensor tensor;
  void* manager;
  void (*deleter)(struct DLManagedTensor* self);
} shw_dl_managed;

typedef struct DLManagedTensorVersioned {
  uint32_t major;
  uint32_t minor;
  void* manager;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  shw_dl_tensor tensor;
} shw_dl_managed_versioned;

#define SHW_DL_MAJOR 1
#define SHW_DL_MINOR 3
#define SHW_DL_READ_ONLY 1
#define SHW_DL_IS_COPIED 2
#define SHW_DL_SUBBYTE_PADDED 4

typedef struct shw_dl_exchange {
  uint32_t major;
  uint32_t minor;
  struct shw_dl_exchange* previous;
  void* allocate;
  int (*managed_from_object)(void* object, shw_dl_managed_versioned** out);
  void* object_from_managed;
  int (*tensor_from_object)(void* object, shw_dl_tensor* out);
  int (*current_stream)(int32_t device_type, int32_t device_id, void** out);
} shw_dl_exchange;

#endif

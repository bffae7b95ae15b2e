/* SPDX-License-Identifier: Apache-2.0
 *
 * The DLPack structs as a host has them, and tensors whose deleter counts its calls. */
#ifndef SHARDWRIGHT_TESTS_CAPI_DLPACK_H
#define SHARDWRIGHT_TESTS_CAPI_DLPACK_H

#include <stdint.h>

/* Codes of DLDataType. */
enum {
  DL_INT = 0,
  DL_UINT = 1,
  DL_FLOAT = 2,
  DL_OPAQUE = 3,
  DL_BFLOAT = 4,
  DL_FLOAT6_E2M3FN = 15,
  DL_FLOAT4_E2M1FN = 17
};

typedef struct DLTensor {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} DLTensor;

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
};

struct DLManagedTensorVersioned {
  uint32_t major;
  uint32_t minor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};

#endif

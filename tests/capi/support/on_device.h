/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors on the device of apart_table.h, whose memory faults under the host's hands; a device that
 * is NULL is the host. All functions end the test when a step fails that should not. */
#ifndef SHARDWRIGHT_TESTS_CAPI_ON_DEVICE_H
#define SHARDWRIGHT_TESTS_CAPI_ON_DEVICE_H

#include "check.h"
#include "states.h"
#include "tests/conformance/device/apart_table.h"

/* `released`, which may be NULL, counts calls of its release. */
static inline shw_device* make_device(int* released) {
  shw_device_vtable vtable;
  shw_device* device = NULL;
  shw_error* error = NULL;
  fill_apart_table(&vtable, released);
  CHECK_OK(shw_device_create(&vtable, &device, &error));
  CHECK_INT(shw_device_type(device), SHW_DEVICE_EXTENSION);
  CHECK_INT(shw_device_id(device), APART_TABLE_ID);
  return device;
}

/* Memory where a device has it, NULL = the host. */
static inline void* new_memory(const shw_device* device, uint64_t bytes) {
  shw_device_vtable vtable;
  shw_error* error = NULL;
  void* memory = NULL;
  if (device == NULL) return calloc(1, bytes);
  fill_apart_table(&vtable, NULL);
  CHECK_OK(vtable.memory_allocate(NULL, bytes, &memory, &error));
  return memory;
}

static inline void end_memory(const shw_device* device, void* memory, uint64_t bytes) {
  shw_device_vtable vtable;
  fill_apart_table(&vtable, NULL);
  if (device == NULL) {
    free(memory);
  } else {
    vtable.memory_release(NULL, memory, bytes);
  }
}

/* Where the host reads and writes it. */
static inline float* seen(const shw_tensor* tensor) {
  if (tensor->data == NULL || tensor->device_type == SHW_DEVICE_CPU) return tensor->data;
  return behind_apart_table(tensor->data);
}

/* Of two dimensions. */
static inline shw_tensor on_device(const shw_device* device, void* data, const int64_t* shape) {
  shw_tensor tensor = float_tensor(data, shape, 2);
  if (device == NULL) return tensor;
  tensor.device_type = shw_device_type(device);
  tensor.device_id = shw_device_id(device);
  return tensor;
}

#endif

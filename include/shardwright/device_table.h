/* SPDX-License-Identifier: Apache-2.0
 *
 * What a host or plugin brings as a device: a table of functions for lanes on which work runs in
 * order beside the host, events that order lanes, memory, copies and conversions. Methods come from
 * any thread, those of one lane or event from one thread at a time. An error goes out through
 * `err`, made by shw_error_create; a status alone is accepted. */
#ifndef SHARDWRIGHT_DEVICE_TABLE_H
#define SHARDWRIGHT_DEVICE_TABLE_H

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Which way a copy goes.
 * Since: 0.1 unstable */
enum { SHW_COPY_HOST_TO_DEVICE = 0, SHW_COPY_DEVICE_TO_HOST = 1, SHW_COPY_DEVICE_TO_DEVICE = 2 };

/* What is put on a lane: runs once, on whatever thread the lane runs it. Its failure stays with the
 * lane until lane_synchronize.
 * Threads: any
 * Blocks: wait
 * Owns: -
 * Errors: any
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_device_task_fn)(void* data, shw_error** err);

/* Makes a lane; one of a higher priority goes first.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: RESOURCE_EXHAUSTED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_device_lane_create_fn)(void* user, int32_t priority,
                                                            void** out, shw_error** err);

/* Gives memory, aligned to 64 bytes at least, its content undefined.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: RESOURCE_EXHAUSTED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_device_allocate_fn)(void* user, uint64_t bytes, void** out,
                                                         shw_error** err);

/* Ends a lane, which waits for what was put on it, or an event.
 * Threads: exclusive(thing)
 * Blocks: wait
 * Owns: thing
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_device_release_fn)(void* user, void* thing);

/* Puts a task on a lane, behind all that was put there before. RESOURCE_EXHAUSTED where there is no
 * memory for it; then it does not run.
 * Threads: exclusive(lane)
 * Blocks: no
 * Owns: -
 * Errors: RESOURCE_EXHAUSTED
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_device_lane_submit_fn)(void* user, void* lane,
                                                            shw_device_task_fn task, void* data,
                                                            shw_error** err);

/* Waits for all that was put on the lane; its first failure since the last call.
 * Threads: exclusive(lane)
 * Blocks: wait
 * Owns: -
 * Errors: any
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_device_lane_synchronize_fn)(void* user, void* lane,
                                                                 shw_error** err);

/* Records an event on a lane; or makes a lane wait for an event as it is recorded now.
 * Threads: exclusive(lane)
 * Blocks: no
 * Owns: -
 * Errors: any
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_device_lane_event_fn)(void* user, void* lane, void* event,
                                                           shw_error** err);

/* Makes an event, which has passed as long as it was never recorded.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: RESOURCE_EXHAUSTED
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_device_event_create_fn)(void* user, void** out,
                                                             shw_error** err);

/* The host waits for an event: OK, or PENDING after `timeout_ns` (-1 = no limit, 0 = no wait).
 * Threads: any
 * Blocks: wait
 * Owns: -
 * Errors: PENDING
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_device_event_wait_fn)(void* user, void* event,
                                                           int64_t timeout_ns, shw_error** err);

/* Gives back memory with the size that it was made with.
 * Threads: any
 * Blocks: no
 * Owns: memory
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_device_free_fn)(void* user, void* memory, uint64_t bytes);

/* Copies on a lane, in its order (SHW_COPY_).
 * Threads: exclusive(lane)
 * Blocks: no
 * Owns: -
 * Errors: any
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_device_copy_fn)(void* user, void* lane, int32_t kind,
                                                     const void* source, void* target,
                                                     uint64_t bytes, shw_error** err);

/* Flag of shw_element_copy: the elements are added to those of `target`.
 * Since: 0.1 unstable */
#define SHW_ELEMENT_COPY_ADD 1

/* A copy of elements inside the memory of a device: `rows` runs of `columns` elements, whose first
 * ones are `source_pitch` and `target_pitch` elements apart. Each is multiplied by `scale` (0 = 1),
 * added where a flag says so, and rounded once to the dtype of `target`; products and sums are in
 * float64 where one of the dtypes is, else in float32. Dtypes: float16, bfloat16, float32 and
 * float64, each with each; any dtype of whole bytes with itself where nothing is multiplied or
 * added. `source` may be `target` where dtype and pitch are the same, else they do not overlap;
 * both are aligned to their elements.
 * Since: 0.1 unstable */
typedef struct shw_element_copy {
  uint32_t struct_size;
  uint32_t flags;
  const void* source;
  void* target;
  uint64_t rows;
  uint64_t columns;
  uint64_t source_pitch;
  uint64_t target_pitch;
  int32_t source_dtype;
  int32_t target_dtype;
  double scale;
} shw_element_copy;

/* Copies elements on a lane, in its order; `copy` is read before it returns.
 * Threads: exclusive(lane)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED, any
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_device_copy_elements_fn)(void* user, void* lane,
                                                              const shw_element_copy* copy,
                                                              shw_error** err);

/* Zeros in memory of the device, on a lane, in its order.
 * Threads: exclusive(lane)
 * Blocks: no
 * Owns: -
 * Errors: any
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_device_fill_zero_fn)(void* user, void* lane, void* target,
                                                          uint64_t bytes, shw_error** err);

/* The stream on which the framework of the host computes now; 0 = none.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
typedef uint64_t(SHW_CALLBACK* shw_device_stream_fn)(void* user);

/* Ends the table's use of `user`; called once, after all lanes, events and memory.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_device_end_fn)(void* user);

/* Flag of shw_device_vtable: memory of the device is memory of the host.
 * Since: 0.1 unstable */
#define SHW_DEVICE_IS_HOST 1

/* Methods of a device. `pinned_allocate` and `pinned_release` give memory of the host that copies
 * reach fastest; both NULL = plain memory. `copy_elements` and `fill_zero` belong together; both
 * NULL = done by the host, where the memory is its own. `current_stream` NULL = 0. `release` may be
 * NULL. `device_type` and `device_id` say where `memory_allocate` gives memory (SHW_DEVICE_ of
 * tensor.h, and which of them): SHW_DEVICE_CPU (0), SHW_DEVICE_CUDA_HOST or SHW_DEVICE_ROCM_HOST
 * with SHW_DEVICE_IS_HOST, any other without, where 0 = SHW_DEVICE_EXTENSION.
 * Since: 0.1 unstable */
typedef struct shw_device_vtable {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t abi_major;
  uint32_t abi_minor;
  const char* name;
  void* user;
  shw_device_lane_create_fn lane_create;
  shw_device_release_fn lane_release;
  shw_device_lane_submit_fn lane_submit;
  shw_device_lane_synchronize_fn lane_synchronize;
  shw_device_lane_event_fn lane_record;
  shw_device_lane_event_fn lane_wait;
  shw_device_event_create_fn event_create;
  shw_device_release_fn event_release;
  shw_device_event_wait_fn event_wait;
  shw_device_allocate_fn memory_allocate;
  shw_device_free_fn memory_release;
  shw_device_allocate_fn pinned_allocate;
  shw_device_free_fn pinned_release;
  shw_device_copy_fn copy;
  shw_device_copy_elements_fn copy_elements;
  shw_device_fill_zero_fn fill_zero;
  shw_device_stream_fn current_stream;
  shw_device_end_fn release;
  int32_t device_type;
  int32_t device_id;
} shw_device_vtable;

/* Byte sizes of the oldest published structs of this header.
 * Since: 0.1 unstable */
#define SHW_ELEMENT_COPY_SIZE_V1 72
#define SHW_DEVICE_VTABLE_SIZE_V1 176

/* clang-format off */
#define SHW_DEVICE_VTABLE_INIT                                                              \
  {sizeof(shw_device_vtable), 0, SHW_ABI_MAJOR, SHW_ABI_MINOR, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
   0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_DEVICE_TABLE_H */

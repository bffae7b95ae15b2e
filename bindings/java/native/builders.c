/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors in bulk from the flat arrays that Java gives, reads into its memory, contexts and waits.
 */
#include <stdlib.h>

#include "bindings/java/native/native.h"
#include "bindings/java/native/tensor_facts.h"
#include "bindings/native/job_ends.h"

shw_status shw_java_out_of_memory(shw_error** err) {
  static const char kMessage[] = "no memory for the arguments of the call";
  return shw_error_create(SHW_RESOURCE_EXHAUSTED, kMessage, sizeof(kMessage) - 1, NULL, 0, NULL,
                          err);
}

shw_status shw_java_context_create(uint32_t threads, uint64_t memory_budget, int32_t log_level,
                                   void* log_bridge, const char* machine, shw_context** out,
                                   shw_error** err) {
  shw_context_options options = SHW_CONTEXT_OPTIONS_INIT;
  options.threads = threads;
  options.memory_budget = memory_budget;
  options.log_level = log_level;
  options.log = log_bridge != NULL ? shw_java_log : NULL;
  options.log_user = log_bridge;
  options.machine = machine;
  return shw_context_create(&options, out, err);
}

enum { kFlags = kTensorFacts, kKind, kLayout, kReplica, kFacts };

shw_tensor shw_java_tensor(const int64_t* facts, const int64_t** shapes) {
  shw_tensor t = SHW_TENSOR_INIT;
  t.data = (void*)(intptr_t)facts[kAddress];
  t.byte_size = (uint64_t)facts[kBytes];
  t.device_type = (int32_t)facts[kDeviceType];
  t.device_id = (int32_t)facts[kDeviceId];
  t.dtype = (int32_t)facts[kDtype];
  t.ndim = (int32_t)facts[kNdim];
  t.shape = *shapes;
  *shapes += t.ndim;
  return t;
}

/* Descriptor i from its facts; *shapes and *strides move on to the next tensor. */
static shw_tensor describe(const int64_t* facts, const int64_t** shapes, const int64_t** strides) {
  shw_tensor t = shw_java_tensor(facts, shapes);
  t.flags = (uint32_t)facts[kFlags];
  if (*strides != NULL) {
    t.strides = *strides;
    *strides += t.ndim;
  }
  return t;
}

/* Columns that the library wants otherwise than Java has them, in one block. */
typedef struct columns {
  shw_tensor* tensors;
  const shw_layout** layouts;
  int32_t* kinds;
  int32_t* replica_ids;
  uint32_t* layout_indices;
} columns;

static int allocate_columns(uint64_t count, uint64_t layout_count, columns* made) {
  made->tensors = malloc(count * (sizeof(shw_tensor) + 2 * sizeof(int32_t) + sizeof(uint32_t)) +
                         layout_count * sizeof(shw_layout*) + 1);
  if (made->tensors == NULL) return -1;
  made->layouts = (const shw_layout**)(made->tensors + count);
  made->kinds = (int32_t*)(made->layouts + layout_count);
  made->replica_ids = made->kinds + count;
  made->layout_indices = (uint32_t*)(made->replica_ids + count);
  return 0;
}

shw_status shw_java_state_add_tensors(
    shw_state* state, uint64_t count, const char* names, const uint64_t* name_offsets,
    const int64_t* facts, const int64_t* shapes, const int64_t* strides,
    const int64_t* global_shapes, const uint64_t* global_shape_offsets, const uint64_t* box_ranges,
    const int64_t* box_offsets, const int64_t* box_sizes, const int64_t* local_offsets,
    const int64_t* layouts, uint64_t layout_count, int32_t rank, const char* paths,
    const uint64_t* path_offsets, const int64_t* grid_fragments, const int64_t* grid_indices,
    const uint64_t* grid_offsets, shw_error** err) {
  columns made;
  if (allocate_columns(count, layout_count, &made) != 0) return shw_java_out_of_memory(err);
  for (uint64_t i = 0; i < count; ++i) {
    made.tensors[i] = describe(facts + i * kFacts, &shapes, &strides);
    made.kinds[i] = (int32_t)facts[i * kFacts + kKind];
    made.replica_ids[i] = (int32_t)facts[i * kFacts + kReplica];
    made.layout_indices[i] = (uint32_t)facts[i * kFacts + kLayout];
  }
  for (uint64_t i = 0; i < layout_count; ++i)
    made.layouts[i] = (const shw_layout*)(intptr_t)layouts[i];
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = count;
  batch.names = names;
  batch.name_offsets = name_offsets;
  batch.tensors = made.tensors;
  batch.global_shapes = global_shapes;
  batch.global_shape_offsets = global_shape_offsets;
  batch.box_ranges = box_ranges;
  batch.box_offsets = box_offsets;
  batch.box_sizes = box_sizes;
  batch.local_offsets = local_offsets;
  if (layout_count != 0) {
    batch.layouts = made.layouts;
    batch.layout_indices = made.layout_indices;
    batch.layout_count = layout_count;
    batch.rank = rank;
  }
  batch.paths = paths;
  batch.path_offsets = path_offsets;
  batch.kinds = made.kinds;
  batch.replica_ids = made.replica_ids;
  batch.grid_fragments = grid_fragments;
  batch.grid_indices = grid_indices;
  batch.grid_offsets = grid_offsets;
  const shw_status status = shw_state_add_tensors(state, &batch, err);
  free(made.tensors);
  return status;
}

shw_status shw_java_object_key_parse(const char* name, uint64_t name_size, shw_buffer** out,
                                     shw_error** err) {
  int64_t values[1 + 2 * 64]; /* bytes of the key, then the cell of at most 64 axes */
  uint64_t size = 0, key_size = 0;
  const shw_status status =
      shw_object_key_parse(name, name_size, values + 1, 2 * 64, &size, &key_size, err);
  if (status != SHW_OK) return status;
  values[0] = (int64_t)key_size;
  return shw_buffer_create(values, (1 + size) * sizeof(int64_t), out, err);
}

shw_status shw_java_read_whole(const shw_checkpoint* checkpoint, uint64_t index,
                               shw_owned_tensor** out, shw_error** err) {
  shw_tensor_info info = SHW_TENSOR_INFO_INIT;
  const shw_status status = shw_checkpoint_tensor_infos(checkpoint, index, 1, &info, err);
  if (status != SHW_OK) return status;
  return shw_checkpoint_read_tensor(checkpoint, index, NULL, NULL, info.ndim, out, err);
}

shw_status shw_java_read_box(const shw_checkpoint* checkpoint, uint64_t index,
                             const int64_t* box_offsets, const int64_t* box_sizes, int32_t ndim,
                             void* target, uint64_t target_bytes, shw_error** err) {
  shw_tensor_info info = SHW_TENSOR_INFO_INIT;
  shw_status status = shw_checkpoint_tensor_infos(checkpoint, index, 1, &info, err);
  if (status != SHW_OK) return status;
  shw_tensor tensor = SHW_TENSOR_INIT;
  tensor.data = target;
  tensor.byte_size = target_bytes;
  tensor.device_type = 1;
  tensor.dtype = info.dtype;
  tensor.ndim = ndim;
  tensor.shape = box_sizes;
  shw_box_batch batch = SHW_BOX_BATCH_INIT;
  batch.count = 1;
  batch.tensors = &index;
  batch.targets = &tensor;
  batch.box_offsets = box_offsets;
  batch.box_sizes = box_sizes;
  shw_report* report = NULL;
  status = shw_checkpoint_read_boxes(checkpoint, &batch, &report, err);
  shw_report_release(report);
  return status;
}

void shw_java_job_wait(shw_job* job, int64_t timeout_ns) {
  const shw_status status = shw_job_wait(job, timeout_ns, NULL);
  (void)status;
}

void shw_java_job_wait_staged(shw_job* job, int64_t timeout_ns) {
  const shw_status status = shw_job_wait_staged(job, timeout_ns, NULL);
  (void)status;
}

void shw_java_job_watch(shw_job* job) {
  if (!shw_watch_job(job)) shw_note_job_end(NULL);
}

void shw_java_job_ends_wait(void) {
  shw_wait_for_job_ends();
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs of the C interface filled from the flat arrays that Java gives. */
#include <stdlib.h>

#include "bindings/java/native/native.h"
#include "bindings/native/job_ends.h"

shw_status shw_java_out_of_memory(shw_error** err) {
  static const char kMessage[] = "no memory for the arguments of the call";
  return shw_error_create(SHW_RESOURCE_EXHAUSTED, kMessage, sizeof(kMessage) - 1, NULL, 0, NULL,
                          err);
}

static uint64_t last(const uint64_t* offsets, uint64_t count) {
  return offsets != NULL ? offsets[count] : 0;
}

void* shw_java_place(char** end, const void* data, uint64_t size) {
  if (data == NULL) return NULL;
  void* at = *end;
  memcpy(at, data, size);
  *end += (size + 8) & ~(uint64_t)7;
  return at;
}

void* shw_java_block(uint64_t struct_size, uint64_t bytes, int parts, char** end) {
  char* memory = calloc(1, struct_size + bytes + (uint64_t)parts * 8);
  *end = memory != NULL ? memory + struct_size : NULL;
  return memory;
}

shw_status shw_java_save_options_create(const int32_t* ints, const int64_t* longs,
                                        const char* trace_path, const char* kind_globs,
                                        const uint64_t* kind_offsets, const int32_t* kind_values,
                                        uint64_t kind_count, const char* metadata,
                                        const uint64_t* metadata_offsets, uint64_t metadata_count,
                                        shw_cancellation* cancellation, shw_save_options** out,
                                        shw_error** err) {
  const uint64_t trace = trace_path != NULL ? strlen(trace_path) + 1 : 0;
  const uint64_t globs = last(kind_offsets, kind_count),
                 texts = last(metadata_offsets, 2 * metadata_count);
  const uint64_t offsets = (kind_count + 1) * 8, pairs = (2 * metadata_count + 1) * 8,
                 values = kind_count * 4;
  char* end = NULL;
  shw_save_options* o =
      shw_java_block(sizeof(*o), trace + globs + offsets + values + texts + pairs, 6, &end);
  if (o == NULL) return shw_java_out_of_memory(err);
  shw_save_options_init(o, sizeof(*o));
  o->overwrite = ints[0];
  o->durability = ints[1];
  o->digests = ints[2];
  o->owner = ints[3];
  o->verify_replicas = ints[4];
  o->format = ints[5];
  o->preset = ints[6];
  o->threads = (uint32_t)ints[7];
  o->file_mode = (uint32_t)ints[8];
  o->keep_generations = (uint32_t)ints[9];
  o->memory_budget = (uint64_t)longs[0];
  o->deadline_ns = longs[1];
  o->trace_path = shw_java_place(&end, trace_path, trace);
  o->kind_globs = shw_java_place(&end, kind_globs, globs);
  o->kind_offsets = shw_java_place(&end, kind_offsets, offsets);
  o->kind_values = shw_java_place(&end, kind_values, values);
  o->kind_count = kind_count;
  o->metadata = shw_java_place(&end, metadata, texts);
  o->metadata_offsets = shw_java_place(&end, metadata_offsets, pairs);
  o->metadata_count = metadata_count;
  o->cancellation = cancellation;
  *out = o;
  return SHW_OK;
}

void shw_java_save_options_release(shw_save_options* options) {
  free(options);
}

shw_status shw_java_load_options_create(const int32_t* ints, const int64_t* longs,
                                        const char* trace_path, const char* strict_globs,
                                        const uint64_t* strict_offsets, const int32_t* strict_rules,
                                        const int32_t* strict_shapes, uint64_t strict_count,
                                        shw_cancellation* cancellation, shw_load_options** out,
                                        shw_error** err) {
  const uint64_t trace = trace_path != NULL ? strlen(trace_path) + 1 : 0,
                 globs = last(strict_offsets, strict_count);
  const uint64_t offsets = (strict_count + 1) * 8, rules = strict_count * 3 * 4,
                 shapes = strict_count * 4;
  char* end = NULL;
  shw_load_options* o =
      shw_java_block(sizeof(*o), trace + globs + offsets + rules + shapes, 5, &end);
  if (o == NULL) return shw_java_out_of_memory(err);
  shw_load_options_init(o, sizeof(*o));
  o->missing = ints[0];
  o->unexpected = ints[1];
  o->cast = ints[2];
  o->verify = ints[3];
  o->format = ints[4];
  o->preset = ints[5];
  o->threads = (uint32_t)ints[6];
  o->shape = ints[7];
  o->memory_budget = (uint64_t)longs[0];
  o->deadline_ns = longs[1];
  o->trace_path = shw_java_place(&end, trace_path, trace);
  o->strict_globs = shw_java_place(&end, strict_globs, globs);
  o->strict_offsets = shw_java_place(&end, strict_offsets, offsets);
  o->strict_rules = shw_java_place(&end, strict_rules, rules);
  o->strict_shapes = shw_java_place(&end, strict_shapes, shapes);
  o->strict_count = strict_count;
  o->cancellation = cancellation;
  *out = o;
  return SHW_OK;
}

void shw_java_load_options_release(shw_load_options* options) {
  free(options);
}

shw_status shw_java_checkpoint_options_create(const int32_t* ints, const int64_t* longs,
                                              shw_cancellation* cancellation,
                                              shw_checkpoint_options** out, shw_error** err) {
  shw_checkpoint_options* o = calloc(1, sizeof(*o));
  if (o == NULL) return shw_java_out_of_memory(err);
  shw_checkpoint_options_init(o, sizeof(*o));
  o->verify = ints[0];
  o->format = ints[1];
  o->threads = (uint32_t)ints[2];
  o->memory_budget = (uint64_t)longs[0];
  o->deadline_ns = longs[1];
  o->cancellation = cancellation;
  *out = o;
  return SHW_OK;
}

void shw_java_checkpoint_options_release(shw_checkpoint_options* options) {
  free(options);
}

shw_status shw_java_estimate_options_create(const int64_t* longs, shw_estimate_options** out,
                                            shw_error** err) {
  shw_estimate_options* o = calloc(1, sizeof(*o));
  if (o == NULL) return shw_java_out_of_memory(err);
  shw_estimate_options_init(o, sizeof(*o));
  o->owner = (int32_t)longs[0];
  o->preset = (int32_t)longs[1];
  o->flags = (uint32_t)longs[2];
  o->memory_budget = (uint64_t)longs[3];
  o->rank_bytes_per_second = (uint64_t)longs[4];
  o->total_bytes_per_second = (uint64_t)longs[5];
  *out = o;
  return SHW_OK;
}

void shw_java_estimate_options_release(shw_estimate_options* options) {
  free(options);
}

shw_status shw_java_context_create(uint32_t threads, uint64_t memory_budget, int32_t log_level,
                                   void* log_bridge, shw_context** out, shw_error** err) {
  shw_context_options options = SHW_CONTEXT_OPTIONS_INIT;
  options.threads = threads;
  options.memory_budget = memory_budget;
  options.log_level = log_level;
  options.log = log_bridge != NULL ? shw_java_log : NULL;
  options.log_user = log_bridge;
  return shw_context_create(&options, out, err);
}

enum { kAddress, kBytes, kDtype, kNdim, kFlags, kKind, kLayout, kFacts };

/* Descriptor i from its facts; *shapes and *strides move on to the next tensor. */
static shw_tensor describe(const int64_t* facts, const int64_t** shapes, const int64_t** strides) {
  shw_tensor t = SHW_TENSOR_INIT;
  t.flags = (uint32_t)facts[kFlags];
  t.data = (void*)(intptr_t)facts[kAddress];
  t.byte_size = (uint64_t)facts[kBytes];
  t.device_type = 1;
  t.dtype_code = (uint8_t)(facts[kDtype] & 0xFF);
  t.dtype_bits = (uint8_t)(facts[kDtype] >> 8);
  t.dtype_lanes = 1;
  t.ndim = (int32_t)facts[kNdim];
  t.shape = *shapes;
  *shapes += t.ndim;
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
  uint32_t* layout_indices;
} columns;

static int allocate_columns(uint64_t count, uint64_t layout_count, columns* made) {
  made->tensors = malloc(count * (sizeof(shw_tensor) + sizeof(int32_t) + sizeof(uint32_t)) +
                         layout_count * sizeof(shw_layout*) + 1);
  if (made->tensors == NULL) return -1;
  made->layouts = (const shw_layout**)(made->tensors + count);
  made->kinds = (int32_t*)(made->layouts + layout_count);
  made->layout_indices = (uint32_t*)(made->kinds + count);
  return 0;
}

shw_status shw_java_state_add_tensors(
    shw_state* state, uint64_t count, const char* names, const uint64_t* name_offsets,
    const int64_t* facts, const int64_t* shapes, const int64_t* strides,
    const int64_t* global_shapes, const uint64_t* global_shape_offsets, const uint64_t* box_ranges,
    const int64_t* box_offsets, const int64_t* box_sizes, const int64_t* local_offsets,
    const int64_t* layouts, uint64_t layout_count, int32_t rank, const char* paths,
    const uint64_t* path_offsets, shw_error** err) {
  columns made;
  if (allocate_columns(count, layout_count, &made) != 0) return shw_java_out_of_memory(err);
  for (uint64_t i = 0; i < count; ++i) {
    made.tensors[i] = describe(facts + i * kFacts, &shapes, &strides);
    made.kinds[i] = (int32_t)facts[i * kFacts + kKind];
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
  const shw_status status = shw_state_add_tensors(state, &batch, err);
  free(made.tensors);
  return status;
}

shw_status shw_java_state_add_objects(shw_state* state, uint64_t count, const char* names,
                                      const uint64_t* name_offsets, const char* contents,
                                      const uint64_t* content_offsets, const char* content_types,
                                      const uint64_t* content_type_offsets, const char* paths,
                                      const uint64_t* path_offsets, const int32_t* kinds,
                                      shw_error** err) {
  shw_object_batch batch = SHW_OBJECT_BATCH_INIT;
  batch.count = count;
  batch.names = names;
  batch.name_offsets = name_offsets;
  batch.data = contents;
  batch.data_offsets = content_offsets;
  batch.content_types = content_types;
  batch.content_type_offsets = content_type_offsets;
  batch.paths = paths;
  batch.path_offsets = path_offsets;
  batch.kinds = kinds;
  return shw_state_add_objects(state, &batch, err);
}

shw_status shw_java_layout_create(const int64_t* mesh, int32_t mesh_ndim, const char* axis_names,
                                  const uint64_t* axis_name_offsets, const int32_t* ranks,
                                  uint64_t rank_count, const int32_t* placements,
                                  const int32_t* map, const uint64_t* map_offsets,
                                  int32_t tensor_ndim, shw_layout** out, shw_error** err) {
  shw_layout_spec spec = SHW_LAYOUT_SPEC_INIT;
  spec.mesh_ndim = mesh_ndim;
  spec.mesh_shape = mesh;
  spec.axis_names = axis_name_offsets != NULL ? axis_names : NULL;
  spec.axis_name_offsets = axis_name_offsets;
  spec.ranks = rank_count > 0 ? ranks : NULL;
  spec.rank_count = rank_count;
  if (placements != NULL) {
    spec.placement_kinds = placements;
    spec.placement_dims = placements + mesh_ndim;
    spec.placement_factors = placements + 2 * mesh_ndim;
  }
  spec.tensor_map = map;
  spec.tensor_map_offsets = map_offsets;
  spec.tensor_ndim = tensor_ndim;
  return shw_layout_create(&spec, out, err);
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
  tensor.dtype_code = info.dtype_code;
  tensor.dtype_bits = info.dtype_bits;
  tensor.dtype_lanes = 1;
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

shw_status shw_java_storage_size(shw_storage* storage, const char* key, uint64_t key_size,
                                 uint64_t* out, shw_error** err) {
  shw_storage_stat stat = SHW_STORAGE_STAT_INIT;
  const shw_status status = shw_storage_stat_key(storage, key, key_size, &stat, err);
  if (status == SHW_OK) *out = stat.size;
  return status;
}

void shw_java_job_wait(shw_job* job, int64_t timeout_ns) {
  const shw_status status = shw_job_wait(job, timeout_ns, NULL);
  (void)status;
}

void shw_java_job_watch(shw_job* job) {
  if (!shw_watch_job(job)) shw_note_job_end(NULL);
}

void shw_java_job_ends_wait(void) {
  shw_wait_for_job_ends();
}

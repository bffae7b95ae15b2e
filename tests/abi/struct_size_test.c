/* SPDX-License-Identifier: Apache-2.0
 *
 * Extensible structs: the rule on sizes, tails, flags and reserved fields, for every struct that a
 * function reads or fills; arrays; and the init functions against the init macros. */
#include <stddef.h>

#include "every_call.h"
#include "support/states.h"

enum { ROOM = 4200 };

typedef shw_status (*struct_call)(struct env* env, void* value, shw_error** err);

/* How one struct is given to the library. */
struct subject {
  const char* name;
  uint32_t size;
  struct_call call;
  int is_out;
  uint32_t reserved; /* offset of a reserved field, 0 = none */
  uint32_t oldest;   /* oldest published size, 0 = that of today */
};

static shw_status give_tensor(struct env* env, void* value, shw_error** err) {
  (void)env;
  return shw_tensor_check(value, err);
}
static shw_status give_grid_shard(struct env* env, void* value, shw_error** err) {
  uint64_t size = 0;
  (void)env;
  return megatron()->grid_boxes(value, NULL, 0, &size, NULL, err);
}
static shw_status give_layout_spec(struct env* env, void* value, shw_error** err) {
  shw_layout* layout = NULL;
  (void)env;
  const shw_status status = shw_layout_create(value, &layout, err);
  shw_layout_release(layout);
  return status;
}
static shw_status give_mapping_spec(struct env* env, void* value, shw_error** err) {
  shw_mapping* mapping = NULL;
  (void)env;
  const shw_status status = shw_mapping_create(value, &mapping, err);
  shw_mapping_release(mapping);
  return status;
}
static shw_status give_tensor_batch(struct env* env, void* value, shw_error** err) {
  return shw_state_add_tensors(env->state, value, err);
}
static shw_status give_object_batch(struct env* env, void* value, shw_error** err) {
  return shw_state_add_objects(env->state, value, err);
}
static shw_status give_context_options(struct env* env, void* value, shw_error** err) {
  shw_context* context = NULL;
  (void)env;
  const shw_status status = shw_context_create(value, &context, err);
  shw_context_release(context);
  return status;
}
static shw_status give_save_options(struct env* env, void* value, shw_error** err) {
  shw_save_planner* planner = NULL;
  const shw_status status =
      shw_save_planner_create(env->context, env->state, 0, 1, value, &planner, err);
  shw_save_planner_release(planner);
  return status;
}
static shw_status give_convert_options(struct env* env, void* value, shw_error** err) {
  shw_report* report = NULL;
  shw_status status =
      shw_save(env->context, env->state, env->storage, "converted/from", NULL, NULL, &report, err);
  shw_report_release(report);
  report = NULL;
  if (status == SHW_OK)
    status = shw_convert(env->context, env->storage, "converted/from", env->storage, "converted/to",
                         value, &report, err);
  shw_report_release(report);
  return status;
}
/* Nothing of Megatron lies there, so the call ends when it has read its options. */
static shw_status give_reshard_options(struct env* env, void* value, shw_error** err) {
  shw_report* report = NULL;
  shw_error* own = NULL;
  const shw_status status = shw_reshard(env->context, env->storage, "resharded/from", env->storage,
                                        "resharded/to", value, &report, &own);
  shw_report_release(report);
  if (status == SHW_NOT_FOUND) {
    shw_error_release(own);
    return SHW_OK;
  }
  if (err != NULL) {
    *err = own;
  } else {
    shw_error_release(own);
  }
  return status;
}
static shw_status give_load_options(struct env* env, void* value, shw_error** err) {
  shw_load_planner* planner = NULL;
  const shw_status status =
      shw_load_planner_create(env->checkpoint, env->state, 0, value, &planner, err);
  shw_load_planner_release(planner);
  return status;
}
static shw_status give_communicator_call(struct env* env, void* value, shw_error** err) {
  shw_work* work = NULL;
  const shw_status status = shw_communicator_barrier(env->communicator, value, &work, err);
  shw_work_release(work);
  return status;
}
static shw_status give_hsdp_options(struct env* env, void* value, shw_error** err) {
  shw_hsdp* hsdp = NULL;
  shw_hsdp_options* options = value;
  if (options->struct_size >= SHW_HSDP_OPTIONS_SIZE_V1) options->mesh = env->hsdp_mesh;
  const shw_status status = shw_hsdp_create(env->context, options, &hsdp, err);
  shw_hsdp_release(hsdp);
  return status;
}
static shw_status give_hsdp_unit_options(struct env* env, void* value, shw_error** err) {
  shw_hsdp_unit* unit = NULL;
  const shw_status status = shw_hsdp_unit_create(env->hsdp, "u", 1, value, &unit, err);
  shw_hsdp_unit_release(unit);
  return status;
}
static shw_status give_hsdp_param_batch(struct env* env, void* value, shw_error** err) {
  shw_hsdp_unit* unit = NULL;
  shw_status status = shw_hsdp_unit_create(env->hsdp, "u", 1, NULL, &unit, err);
  if (status == SHW_OK) status = shw_hsdp_unit_add_params(unit, value, err);
  shw_hsdp_unit_release(unit);
  return status;
}
static shw_status give_hsdp_phase_options(struct env* env, void* value, shw_error** err) {
  return shw_hsdp_unit_post_forward(env->hsdp_unit, value, err);
}
static shw_status give_hsdp_estimate_unit(struct env* env, void* value, shw_error** err) {
  shw_hsdp_estimate_unit* unit = value;
  shw_hsdp_memory memory = SHW_HSDP_MEMORY_INIT;
  if (unit->struct_size >= SHW_HSDP_ESTIMATE_UNIT_SIZE_V1)
    unit->params = &env->hsdp_param_batch_value;
  return shw_hsdp_estimate(unit, 1, &env->hsdp_estimate_world_value, NULL, 0, &memory, err);
}
static shw_status give_hsdp_estimate_world(struct env* env, void* value, shw_error** err) {
  shw_hsdp_estimate_world* world = value;
  shw_hsdp_memory memory = SHW_HSDP_MEMORY_INIT;
  (void)env;
  if (world->struct_size >= SHW_HSDP_ESTIMATE_WORLD_SIZE_V1)
    world->shard_size = world->replicate_size = 1;
  return shw_hsdp_estimate(NULL, 0, world, NULL, 0, &memory, err);
}
static shw_status take_hsdp_box(struct env* env, void* value, shw_error** err) {
  return shw_hsdp_unit_box(env->hsdp_unit, 0, value, err);
}
static shw_status take_hsdp_memory(struct env* env, void* value, shw_error** err) {
  return shw_hsdp_unit_stats(env->hsdp_unit, value, err);
}
static shw_status give_collective_call(struct env* env, void* value, shw_error** err) {
  return shw_collective_barrier(env->collective, value, err);
}
static shw_status give_box_batch(struct env* env, void* value, shw_error** err) {
  shw_report* report = NULL;
  const shw_status status = shw_checkpoint_read_boxes(env->checkpoint, value, &report, err);
  shw_report_release(report);
  return status;
}
/* A plan without entries. */
static shw_buffer* no_entries(int32_t kind) {
  shw_describe_options options = SHW_DESCRIBE_OPTIONS_INIT;
  shw_entry_batch entries = SHW_ENTRY_BATCH_INIT;
  shw_buffer* plan = NULL;
  shw_error* error = NULL;
  options.kind = kind;
  CHECK_OK(shw_plan_describe(&options, &entries, &plan, &error));
  return plan;
}
static shw_plan* plan_of(shw_buffer* bytes) {
  shw_plan* plan = NULL;
  shw_error* error = NULL;
  CHECK_OK(shw_plan_create(shw_buffer_data(bytes), shw_buffer_size(bytes), &plan, &error));
  shw_buffer_release(bytes);
  return plan;
}
static shw_status give_describe_options(struct env* env, void* value, shw_error** err) {
  shw_entry_batch entries = SHW_ENTRY_BATCH_INIT;
  shw_buffer* plan = NULL;
  (void)env;
  const shw_status status = shw_plan_describe(value, &entries, &plan, err);
  shw_buffer_release(plan);
  return status;
}
static shw_status give_entry_batch(struct env* env, void* value, shw_error** err) {
  shw_describe_options options = SHW_DESCRIBE_OPTIONS_INIT;
  shw_buffer* plan = NULL;
  (void)env;
  const shw_status status = shw_plan_describe(&options, value, &plan, err);
  shw_buffer_release(plan);
  return status;
}
static shw_status give_merge_options(struct env* env, void* value, shw_error** err) {
  shw_buffer* local = no_entries(SHW_PLAN_LOCAL_SAVE);
  shw_buffer* merged = NULL;
  (void)env;
  const shw_status status = shw_plan_merge(value, shw_buffer_data(local),
                                           shw_buffer_part_offsets(local), 1, &merged, err);
  shw_buffer_release(merged);
  shw_buffer_release(local);
  return status;
}
static shw_status give_match_options(struct env* env, void* value, shw_error** err) {
  shw_plan* stored = plan_of(no_entries(SHW_PLAN_MERGED_SAVE));
  shw_entry_batch wanted = SHW_ENTRY_BATCH_INIT;
  shw_buffer* matches = NULL;
  (void)env;
  const shw_status status = shw_plan_match(value, stored, &wanted, &matches, err);
  shw_buffer_release(matches);
  shw_plan_release(stored);
  return status;
}
static shw_status take_entry_batch(struct env* env, void* value, shw_error** err) {
  shw_plan* plan = plan_of(no_entries(SHW_PLAN_LOCAL_SAVE));
  (void)env;
  const shw_status status = shw_plan_entries(plan, value, err);
  shw_plan_release(plan);
  return status;
}
static shw_status give_estimate_options(struct env* env, void* value, shw_error** err) {
  shw_buffer* estimate = NULL;
  const shw_status status = shw_estimate_save(env->job_description, value, &estimate, err);
  shw_buffer_release(estimate);
  return status;
}
static shw_status take_report_summary(struct env* env, void* value, shw_error** err) {
  return shw_report_summarize(env->report, value, err);
}
static shw_status take_tensor(struct env* env, void* value, shw_error** err) {
  return shw_state_tensor(env->state, 0, value, err);
}
static shw_status take_plan_item(struct env* env, void* value, shw_error** err) {
  return shw_plan_item_at(env->plan, 0, value, err);
}
static shw_status take_progress(struct env* env, void* value, shw_error** err) {
  return shw_job_progress(env->job, value, err);
}
static shw_status take_storage_stat(struct env* env, void* value, shw_error** err) {
  return shw_storage_stat_key(env->storage, "key", 3, value, err);
}
static shw_status take_tensor_info(struct env* env, void* value, shw_error** err) {
  return shw_checkpoint_tensor_infos(env->checkpoint, 0, 1, value, err);
}
static shw_status take_chunk_info(struct env* env, void* value, shw_error** err) {
  return shw_checkpoint_chunk_infos(env->checkpoint, 0, 1, value, err);
}

static const struct subject subjects[] = {
    {"shw_tensor", sizeof(shw_tensor), give_tensor, 0, offsetof(shw_tensor, reserved1), 0},
    {"shw_layout_spec", sizeof(shw_layout_spec), give_layout_spec, 0,
     offsetof(shw_layout_spec, reserved0), SHW_LAYOUT_SPEC_SIZE_V1},
    {"shw_layout_spec", sizeof(shw_layout_spec), give_layout_spec, 0,
     offsetof(shw_layout_spec, reserved1), SHW_LAYOUT_SPEC_SIZE_V1},
    {"shw_grid_shard", sizeof(shw_grid_shard), give_grid_shard, 0, 0, 0},
    {"shw_tensor_batch", sizeof(shw_tensor_batch), give_tensor_batch, 0,
     offsetof(shw_tensor_batch, reserved0), SHW_TENSOR_BATCH_SIZE_V1},
    {"shw_object_batch", sizeof(shw_object_batch), give_object_batch, 0, 0,
     SHW_OBJECT_BATCH_SIZE_V1},
    {"shw_mapping_spec", sizeof(shw_mapping_spec), give_mapping_spec, 0, 0, 0},
    {"shw_context_options", sizeof(shw_context_options), give_context_options, 0, 0,
     SHW_CONTEXT_OPTIONS_SIZE_V1},
    {"shw_save_options", sizeof(shw_save_options), give_save_options, 0, 0,
     SHW_SAVE_OPTIONS_SIZE_V1},
    {"shw_convert_options", sizeof(shw_convert_options), give_convert_options, 0,
     offsetof(shw_convert_options, reserved0), SHW_CONVERT_OPTIONS_SIZE_V1},
    {"shw_reshard_options", sizeof(shw_reshard_options), give_reshard_options, 0, 0,
     SHW_RESHARD_OPTIONS_SIZE_V1},
    {"shw_load_options", sizeof(shw_load_options), give_load_options, 0,
     offsetof(shw_load_options, reserved0), SHW_LOAD_OPTIONS_SIZE_V1},
    {"shw_load_options", sizeof(shw_load_options), give_load_options, 0,
     offsetof(shw_load_options, reserved1), SHW_LOAD_OPTIONS_SIZE_V1},
    {"shw_collective_call", sizeof(shw_collective_call), give_collective_call, 0,
     offsetof(shw_collective_call, reserved0), 0},
    {"shw_box_batch", sizeof(shw_box_batch), give_box_batch, 0, 0, 0},
    {"shw_entry_batch", sizeof(shw_entry_batch), give_entry_batch, 0, 0, 0},
    {"shw_describe_options", sizeof(shw_describe_options), give_describe_options, 0,
     offsetof(shw_describe_options, reserved0), 0},
    {"shw_merge_options", sizeof(shw_merge_options), give_merge_options, 0,
     offsetof(shw_merge_options, reserved0), 0},
    {"shw_match_options", sizeof(shw_match_options), give_match_options, 0,
     offsetof(shw_match_options, reserved1), 0},
    {"shw_entry_batch", sizeof(shw_entry_batch), take_entry_batch, 1, 0, 0},
    {"shw_estimate_options", sizeof(shw_estimate_options), give_estimate_options, 0, 0, 0},
    {"shw_communicator_call", sizeof(shw_communicator_call), give_communicator_call, 0,
     offsetof(shw_communicator_call, reserved0), 0},
    {"shw_hsdp_options", sizeof(shw_hsdp_options), give_hsdp_options, 0, 0, 0},
    {"shw_hsdp_unit_options", sizeof(shw_hsdp_unit_options), give_hsdp_unit_options, 0,
     offsetof(shw_hsdp_unit_options, reserved0), 0},
    {"shw_hsdp_param_batch", sizeof(shw_hsdp_param_batch), give_hsdp_param_batch, 0, 0, 0},
    {"shw_hsdp_phase_options", sizeof(shw_hsdp_phase_options), give_hsdp_phase_options, 0,
     offsetof(shw_hsdp_phase_options, reserved0), 0},
    {"shw_hsdp_estimate_unit", sizeof(shw_hsdp_estimate_unit), give_hsdp_estimate_unit, 0, 0, 0},
    {"shw_hsdp_estimate_world", sizeof(shw_hsdp_estimate_world), give_hsdp_estimate_world, 0, 0, 0},
    {"shw_hsdp_box", sizeof(shw_hsdp_box), take_hsdp_box, 1, 0, 0},
    {"shw_hsdp_memory", sizeof(shw_hsdp_memory), take_hsdp_memory, 1, 0, 0},
    {"shw_report_summary", sizeof(shw_report_summary), take_report_summary, 1, 0, 0},
    {"shw_tensor", sizeof(shw_tensor), take_tensor, 1, 0, 0},
    {"shw_plan_item", sizeof(shw_plan_item), take_plan_item, 1, 0, 0},
    {"shw_progress", sizeof(shw_progress), take_progress, 1, 0, 0},
    {"shw_storage_stat", sizeof(shw_storage_stat), take_storage_stat, 1, 0, 0},
    {"shw_tensor_info", sizeof(shw_tensor_info), take_tensor_info, 1, 0, 0},
    {"shw_chunk_info", sizeof(shw_chunk_info), take_chunk_info, 1, 0, 0},
};
enum { SUBJECTS = sizeof(subjects) / sizeof(subjects[0]) };

/* A good value of the struct in `room`, whose struct_size says `size`. */
static uint8_t* good_value(const struct subject* subject, uint32_t size) {
  static uint64_t room[ROOM / 8];
  static const int64_t mesh[] = {1};
  static const int32_t kinds[] = {SHW_PLACEMENT_REPLICATE};
  memset(room, 0, sizeof(room));
  if (!subject->is_out && strcmp(subject->name, "shw_tensor") == 0) {
    static float value;
    const shw_tensor tensor = float_tensor(&value, NULL, 0);
    memcpy(room, &tensor, sizeof(tensor));
  }
  if (strcmp(subject->name, "shw_layout_spec") == 0) {
    shw_layout_spec* spec = (shw_layout_spec*)(void*)room;
    spec->mesh_ndim = 1;
    spec->mesh_shape = mesh;
    spec->placement_kinds = kinds;
  }
  if (strcmp(subject->name, "shw_mapping_spec") == 0)
    ((shw_mapping_spec*)(void*)room)->shipped = "swiglu";
  memcpy(room, &size, sizeof(size));
  return (uint8_t*)room;
}

static void check_subject(struct env* env, const struct subject* subject, uint8_t* value,
                          shw_status wanted, const char* text) {
  shw_error* error = NULL;
  const shw_status status = subject->call(env, value, &error);
  if (status != wanted || strstr(shw_error_message(error, NULL), text) == NULL) {
    fprintf(stderr, "%s gives %s: %s, expected %s with '%s'\n", subject->name,
            shw_status_name(status), shw_error_message(error, NULL), shw_status_name(wanted), text);
    exit(1);
  }
  shw_error_release(error);
}

static void sizes_that_are_none_are_refused(void) {
  struct env env;
  make_env(&env);
  for (int i = 0; i < SUBJECTS; ++i) {
    const uint32_t oldest = subjects[i].oldest != 0 ? subjects[i].oldest : subjects[i].size;
    const uint32_t sizes[] = {0, 4, 8, oldest - 8, subjects[i].size + 4, 4104, UINT32_MAX};
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); ++k) {
      check_subject(&env, &subjects[i], good_value(&subjects[i], sizes[k]), SHW_INVALID_ARGUMENT,
                    "struct_size");
    }
  }
  release_env(&env);
}

static void structs_of_older_callers_end_where_they_say(void) {
  struct env env;
  make_env(&env);
  for (int i = 0; i < SUBJECTS; ++i) {
    if (subjects[i].oldest == 0) continue;
    uint8_t* value = good_value(&subjects[i], subjects[i].oldest);
    memset(value + subjects[i].oldest, 0xEE, 64); /* memory of the caller that is none of ours */
    check_subject(&env, &subjects[i], value, SHW_OK, "");
  }
  release_env(&env);
}

static void longer_structs_must_end_with_zeros(void) {
  struct env env;
  make_env(&env);
  for (int i = 0; i < SUBJECTS; ++i) {
    const struct subject* subject = &subjects[i];
    if (subject->is_out) continue;
    check_subject(&env, subject, good_value(subject, subject->size), SHW_OK, "");
    check_subject(&env, subject, good_value(subject, subject->size + 8), SHW_OK, "");
    check_subject(&env, subject, good_value(subject, 4096), SHW_OK, "");
    for (uint32_t offset = subject->size; offset < subject->size + 8; ++offset) {
      char text[32];
      uint8_t* value = good_value(subject, subject->size + 8);
      value[offset] = 1;
      snprintf(text, sizeof(text), "byte %u ", offset);
      check_subject(&env, subject, value, SHW_UNIMPLEMENTED, text);
    }
  }
  release_env(&env);
}

static void unknown_flags_and_reserved_fields_are_told(void) {
  struct env env;
  make_env(&env);
  for (int i = 0; i < SUBJECTS; ++i) {
    const struct subject* subject = &subjects[i];
    if (subject->is_out) continue;
    uint8_t* value = good_value(subject, subject->size);
    value[7] = 0x80; /* bit 31 of flags */
    check_subject(&env, subject, value, SHW_UNIMPLEMENTED, "flags");
    if (subject->reserved == 0) continue;
    char text[32];
    value = good_value(subject, subject->size);
    value[subject->reserved] = 1;
    snprintf(text, sizeof(text), "byte %u ", subject->reserved);
    check_subject(&env, subject, value, SHW_UNIMPLEMENTED, text);
  }
  release_env(&env);
}

static void out_structs_are_filled_as_far_as_known(void) {
  struct env env;
  shw_error* error = NULL;
  make_env(&env);
  CHECK_OK(shw_storage_put(env.storage, "key", 3, "x", 1, 0, NULL, 0, &error));
  for (int i = 0; i < SUBJECTS; ++i) {
    const struct subject* subject = &subjects[i];
    if (!subject->is_out) continue;
    uint8_t* value = good_value(subject, subject->size + 16);
    memset(value + 4, 0xEE, subject->size + 20);
    check_subject(&env, subject, value, SHW_OK, "");
    uint32_t written = 0;
    memcpy(&written, value, sizeof(written));
    CHECK_INT(written, subject->size); /* what the library knows, never more */
    for (uint32_t k = 0; k < 16; ++k) CHECK_INT(value[subject->size + k], 0);
    CHECK_INT(value[subject->size + 16], 0xEE); /* behind the caller's struct */
  }
  release_env(&env);
}

static void arrays_have_one_stride(void) {
  struct env env;
  shw_error* error = NULL;
  make_env(&env);
  struct longer_info { /* of a caller with a newer header */
    shw_tensor_info info;
    uint64_t newer;
  } infos[2];
  memset(infos, 0xEE, sizeof(infos));
  infos[0].info.struct_size = infos[1].info.struct_size = sizeof(infos[0]);
  float value = 1;
  add_floats(env.state, "second", &value, NULL, 0);
  shw_report* report = NULL;
  CHECK_OK(shw_save(env.context, env.state, env.storage, "two", NULL, NULL, &report, &error));
  shw_report_release(report);
  shw_checkpoint* two = NULL;
  CHECK_OK(shw_checkpoint_open(env.context, env.storage, "two", NULL, &two, &error));
  CHECK_OK(shw_checkpoint_tensor_infos(two, 0, 2, &infos[0].info, &error));
  CHECK(infos[1].info.ndim + infos[0].info.ndim == 2 && infos[1].newer == 0);
  infos[0].info.struct_size = sizeof(infos[0]);
  infos[1].info.struct_size = sizeof(shw_tensor_info);
  CHECK_FAILS(shw_checkpoint_tensor_infos(two, 0, 2, &infos[0].info, &error), SHW_INVALID_ARGUMENT,
              "infos[1]");
  shw_checkpoint_release(two);
  release_env(&env);
}

#define CHECK_TWIN(type, macro, function)                          \
  do {                                                             \
    type from_macro = macro;                                       \
    type from_function;                                            \
    memset(&from_function, 0xEE, sizeof(from_function));           \
    function(&from_function, sizeof(type));                        \
    CHECK(memcmp(&from_macro, &from_function, sizeof(type)) == 0); \
    function(NULL, sizeof(type));                                  \
  } while (0)

static void init_functions_equal_their_macros(void) {
  CHECK_TWIN(shw_log_record, SHW_LOG_RECORD_INIT, shw_log_record_init);
  CHECK_TWIN(shw_report_summary, SHW_REPORT_SUMMARY_INIT, shw_report_summary_init);
  CHECK_TWIN(shw_tensor, SHW_TENSOR_INIT, shw_tensor_init);
  CHECK_TWIN(shw_layout_spec, SHW_LAYOUT_SPEC_INIT, shw_layout_spec_init);
  CHECK_TWIN(shw_grid_shard, SHW_GRID_SHARD_INIT, megatron()->grid_shard_init);
  CHECK_TWIN(shw_tensor_batch, SHW_TENSOR_BATCH_INIT, shw_tensor_batch_init);
  CHECK_TWIN(shw_object_batch, SHW_OBJECT_BATCH_INIT, shw_object_batch_init);
  CHECK_TWIN(shw_mapping_spec, SHW_MAPPING_SPEC_INIT, shw_mapping_spec_init);
  CHECK_TWIN(shw_plan_item, SHW_PLAN_ITEM_INIT, shw_plan_item_init);
  CHECK_TWIN(shw_progress, SHW_PROGRESS_INIT, shw_progress_init);
  CHECK_TWIN(shw_storage_stat, SHW_STORAGE_STAT_INIT, shw_storage_stat_init);
  CHECK_TWIN(shw_storage_entry, SHW_STORAGE_ENTRY_INIT, shw_storage_entry_init);
  CHECK_TWIN(shw_storage_vtable, SHW_STORAGE_VTABLE_INIT, shw_storage_vtable_init);
  CHECK_TWIN(shw_collective_call, SHW_COLLECTIVE_CALL_INIT, shw_collective_call_init);
  CHECK_TWIN(shw_collective_vtable, SHW_COLLECTIVE_VTABLE_INIT, shw_collective_vtable_init);
  CHECK_TWIN(shw_allocator, SHW_ALLOCATOR_INIT, shw_allocator_init);
  CHECK_TWIN(shw_context_options, SHW_CONTEXT_OPTIONS_INIT, shw_context_options_init);
  CHECK_TWIN(shw_save_options, SHW_SAVE_OPTIONS_INIT, shw_save_options_init);
  CHECK_TWIN(shw_estimate_options, SHW_ESTIMATE_OPTIONS_INIT, shw_estimate_options_init);
  CHECK_TWIN(shw_convert_options, SHW_CONVERT_OPTIONS_INIT, shw_convert_options_init);
  CHECK_TWIN(shw_reshard_options, SHW_RESHARD_OPTIONS_INIT, shw_reshard_options_init);
  CHECK_TWIN(shw_exchange_round, SHW_EXCHANGE_ROUND_INIT, shw_exchange_round_init);
  CHECK_TWIN(shw_load_options, SHW_LOAD_OPTIONS_INIT, shw_load_options_init);
  CHECK_TWIN(shw_checkpoint_options, SHW_CHECKPOINT_OPTIONS_INIT, shw_checkpoint_options_init);
  CHECK_TWIN(shw_tensor_info, SHW_TENSOR_INFO_INIT, shw_tensor_info_init);
  CHECK_TWIN(shw_chunk_info, SHW_CHUNK_INFO_INIT, shw_chunk_info_init);
  CHECK_TWIN(shw_box_batch, SHW_BOX_BATCH_INIT, shw_box_batch_init);
  CHECK_TWIN(shw_entry_batch, SHW_ENTRY_BATCH_INIT, shw_entry_batch_init);
  CHECK_TWIN(shw_describe_options, SHW_DESCRIBE_OPTIONS_INIT, shw_describe_options_init);
  CHECK_TWIN(shw_merge_options, SHW_MERGE_OPTIONS_INIT, shw_merge_options_init);
  CHECK_TWIN(shw_match_options, SHW_MATCH_OPTIONS_INIT, shw_match_options_init);
  CHECK_TWIN(shw_communicator_call, SHW_COMMUNICATOR_CALL_INIT, shw_communicator_call_init);
  CHECK_TWIN(shw_communicator_vtable, SHW_COMMUNICATOR_VTABLE_INIT, shw_communicator_vtable_init);
  CHECK_TWIN(shw_device_vtable, SHW_DEVICE_VTABLE_INIT, shw_device_vtable_init);
  CHECK_TWIN(shw_hsdp_options, SHW_HSDP_OPTIONS_INIT, shw_hsdp_options_init);
  CHECK_TWIN(shw_hsdp_unit_options, SHW_HSDP_UNIT_OPTIONS_INIT, shw_hsdp_unit_options_init);
  CHECK_TWIN(shw_hsdp_param_batch, SHW_HSDP_PARAM_BATCH_INIT, shw_hsdp_param_batch_init);
  CHECK_TWIN(shw_hsdp_box, SHW_HSDP_BOX_INIT, shw_hsdp_box_init);
  CHECK_TWIN(shw_hsdp_allocator, SHW_HSDP_ALLOCATOR_INIT, shw_hsdp_allocator_init);
  CHECK_TWIN(shw_hsdp_phase_options, SHW_HSDP_PHASE_OPTIONS_INIT, shw_hsdp_phase_options_init);
  CHECK_TWIN(shw_hsdp_memory, SHW_HSDP_MEMORY_INIT, shw_hsdp_memory_init);
  CHECK_TWIN(shw_hsdp_estimate_unit, SHW_HSDP_ESTIMATE_UNIT_INIT, shw_hsdp_estimate_unit_init);
  CHECK_TWIN(shw_hsdp_estimate_world, SHW_HSDP_ESTIMATE_WORLD_INIT, shw_hsdp_estimate_world_init);
  CHECK_TWIN(shw_plugin, SHW_PLUGIN_INIT, shw_plugin_init);
}

static void oldest_sizes_are_those_of_today(void) {
  CHECK_INT(sizeof(shw_tensor), SHW_TENSOR_SIZE_V1);
  CHECK_INT(sizeof(shw_log_record), SHW_LOG_RECORD_SIZE_V1);
  CHECK_INT(sizeof(shw_host_api), SHW_HOST_API_SIZE_V1);
  CHECK_INT(sizeof(shw_plugin), SHW_PLUGIN_SIZE_V1);
  CHECK_INT(sizeof(shw_storage_vtable), SHW_STORAGE_VTABLE_SIZE_V1);
  CHECK_INT(sizeof(shw_collective_vtable), SHW_COLLECTIVE_VTABLE_SIZE_V1);
  CHECK_INT(sizeof(shw_communicator_call), SHW_COMMUNICATOR_CALL_SIZE_V1);
  CHECK_INT(sizeof(shw_communicator_vtable), SHW_COMMUNICATOR_VTABLE_SIZE_V1);
  CHECK_INT(sizeof(shw_element_copy), SHW_ELEMENT_COPY_SIZE_V1);
  CHECK_INT(sizeof(shw_hsdp_options), SHW_HSDP_OPTIONS_SIZE_V1);
  CHECK_INT(sizeof(shw_hsdp_unit_options), SHW_HSDP_UNIT_OPTIONS_SIZE_V1);
  CHECK_INT(sizeof(shw_hsdp_param_batch), SHW_HSDP_PARAM_BATCH_SIZE_V1);
  CHECK_INT(sizeof(shw_hsdp_box), SHW_HSDP_BOX_SIZE_V1);
  CHECK_INT(sizeof(shw_hsdp_allocator), SHW_HSDP_ALLOCATOR_SIZE_V1);
  CHECK_INT(sizeof(shw_hsdp_phase_options), SHW_HSDP_PHASE_OPTIONS_SIZE_V1);
  CHECK_INT(sizeof(shw_hsdp_memory), SHW_HSDP_MEMORY_SIZE_V1);
  CHECK_INT(sizeof(shw_hsdp_estimate_unit), SHW_HSDP_ESTIMATE_UNIT_SIZE_V1);
  CHECK_INT(sizeof(shw_hsdp_estimate_world), SHW_HSDP_ESTIMATE_WORLD_SIZE_V1);
  CHECK_INT(sizeof(shw_grid_shard), SHW_GRID_SHARD_SIZE_V1);
  CHECK_INT(sizeof(shw_exchange_round), SHW_EXCHANGE_ROUND_SIZE_V1);
  /* These grew: what was appended begins where the oldest struct ends. */
  CHECK_INT(offsetof(shw_layout_spec, tensor_map), SHW_LAYOUT_SPEC_SIZE_V1);
  CHECK_INT(offsetof(shw_reshard_options, pipeline_layers), SHW_RESHARD_OPTIONS_SIZE_V1);
  CHECK_INT(offsetof(shw_context_options, machine), SHW_CONTEXT_OPTIONS_SIZE_V1);
  CHECK_INT(offsetof(shw_save_options, cancellation), SHW_SAVE_OPTIONS_SIZE_V1);
  CHECK_INT(offsetof(shw_convert_options, integrity), SHW_CONVERT_OPTIONS_SIZE_V1);
  CHECK_INT(offsetof(shw_load_options, cancellation), SHW_LOAD_OPTIONS_SIZE_V1);
  CHECK_INT(offsetof(shw_checkpoint_options, cancellation), SHW_CHECKPOINT_OPTIONS_SIZE_V1);
  CHECK_INT(offsetof(shw_device_vtable, device_type), SHW_DEVICE_VTABLE_SIZE_V1);
}

TEST_MAIN(TEST_ENTRY(sizes_that_are_none_are_refused),
          TEST_ENTRY(structs_of_older_callers_end_where_they_say),
          TEST_ENTRY(longer_structs_must_end_with_zeros),
          TEST_ENTRY(unknown_flags_and_reserved_fields_are_told),
          TEST_ENTRY(out_structs_are_filled_as_far_as_known), TEST_ENTRY(arrays_have_one_stride),
          TEST_ENTRY(init_functions_equal_their_macros),
          TEST_ENTRY(oldest_sizes_are_those_of_today))

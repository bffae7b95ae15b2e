/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects are made through the same public functions that the tests call. */
#include "every_call.h"

#include "support/dlpack.h"
#include "support/scratch.h"
#include "support/states.h"

static char mark;
void* untouched(void) {
  return &mark;
}

static float values[6];
static int64_t tensor_shape[] = {2, 3};

static void make_structs(struct env* env) {
  shw_report_summary_init(&env->report_summary_value, sizeof(env->report_summary_value));
  shw_tensor_init(&env->tensor_value, sizeof(env->tensor_value));
  shw_layout_spec_init(&env->layout_spec_value, sizeof(env->layout_spec_value));
  megatron()->grid_shard_init(&env->grid_shard_value, sizeof(env->grid_shard_value));
  shw_tensor_batch_init(&env->tensor_batch_value, sizeof(env->tensor_batch_value));
  shw_object_batch_init(&env->object_batch_value, sizeof(env->object_batch_value));
  shw_plan_item_init(&env->plan_item_value, sizeof(env->plan_item_value));
  shw_progress_init(&env->progress_value, sizeof(env->progress_value));
  shw_storage_stat_init(&env->storage_stat_value, sizeof(env->storage_stat_value));
  shw_storage_vtable_init(&env->storage_vtable_value, sizeof(env->storage_vtable_value));
  shw_collective_call_init(&env->collective_call_value, sizeof(env->collective_call_value));
  shw_collective_vtable_init(&env->collective_vtable_value, sizeof(env->collective_vtable_value));
  shw_context_options_init(&env->context_options_value, sizeof(env->context_options_value));
  shw_save_options_init(&env->save_options_value, sizeof(env->save_options_value));
  shw_load_options_init(&env->load_options_value, sizeof(env->load_options_value));
  shw_exchange_round_init(&env->exchange_round_value, sizeof(env->exchange_round_value));
  shw_convert_options_init(&env->convert_options_value, sizeof(env->convert_options_value));
  shw_reshard_options_init(&env->reshard_options_value, sizeof(env->reshard_options_value));
  shw_checkpoint_options_init(&env->checkpoint_options_value,
                              sizeof(env->checkpoint_options_value));
  shw_tensor_info_init(&env->tensor_info_value, sizeof(env->tensor_info_value));
  shw_chunk_info_init(&env->chunk_info_value, sizeof(env->chunk_info_value));
  shw_box_batch_init(&env->box_batch_value, sizeof(env->box_batch_value));
  shw_entry_batch_init(&env->entry_batch_value, sizeof(env->entry_batch_value));
  shw_describe_options_init(&env->describe_options_value, sizeof(env->describe_options_value));
  shw_merge_options_init(&env->merge_options_value, sizeof(env->merge_options_value));
  shw_match_options_init(&env->match_options_value, sizeof(env->match_options_value));
  shw_estimate_options_init(&env->estimate_options_value, sizeof(env->estimate_options_value));
  shw_communicator_call_init(&env->communicator_call_value, sizeof(env->communicator_call_value));
  shw_communicator_vtable_init(&env->communicator_vtable_value,
                               sizeof(env->communicator_vtable_value));
  shw_device_vtable_init(&env->device_vtable_value, sizeof(env->device_vtable_value));
  shw_hsdp_options_init(&env->hsdp_options_value, sizeof(env->hsdp_options_value));
  shw_hsdp_unit_options_init(&env->hsdp_unit_options_value, sizeof(env->hsdp_unit_options_value));
  shw_hsdp_param_batch_init(&env->hsdp_param_batch_value, sizeof(env->hsdp_param_batch_value));
  shw_hsdp_box_init(&env->hsdp_box_value, sizeof(env->hsdp_box_value));
  shw_hsdp_allocator_init(&env->hsdp_allocator_value, sizeof(env->hsdp_allocator_value));
  shw_hsdp_phase_options_init(&env->hsdp_phase_options_value,
                              sizeof(env->hsdp_phase_options_value));
  shw_hsdp_memory_init(&env->hsdp_memory_value, sizeof(env->hsdp_memory_value));
  shw_hsdp_estimate_unit_init(&env->hsdp_estimate_unit_value,
                              sizeof(env->hsdp_estimate_unit_value));
  shw_hsdp_estimate_world_init(&env->hsdp_estimate_world_value,
                               sizeof(env->hsdp_estimate_world_value));
  env->hsdp_estimate_world_value.shard_size = env->hsdp_estimate_world_value.replicate_size = 1;
  env->hsdp_estimate_unit_value.params = &env->hsdp_param_batch_value;
  env->tensor_batch_value.count = 1;
  env->tensor_value.dtype = SHW_FLOAT32;
}

static void make_dlpack(struct env* env) {
  static struct DLManagedTensorVersioned versioned;
  static struct DLManagedTensor legacy;
  const DLTensor tensor = {values, 1, 0, 2, DL_FLOAT, 32, 1, tensor_shape, NULL, 0};
  versioned.major = 1;
  versioned.dl_tensor = tensor;
  legacy.dl_tensor = tensor;
  env->dlpack = env->dlpack_list[0] = &versioned;
  env->dlpack_legacy = env->dlpack_legacy_list[0] = &legacy;
}

static void mark_outs(struct env* env) {
  env->out = untouched();
  env->api = untouched();
  env->dlpack_out = untouched();
  env->dlpack_legacy_out = untouched();
  env->size = 4242;
  env->real = 4242;
  env->number = 4242;
  for (int i = 0; i < 8; ++i) {
    env->values[i] = 4242;
    env->shape[i] = 1;
    env->offsets[i] = (uint64_t)i;
  }
}

int outs_untouched(const struct env* env) {
  return env->out == untouched() && (const void*)env->api == untouched() &&
         (void*)env->dlpack_out == untouched() && (void*)env->dlpack_legacy_out == untouched() &&
         env->size == 4242 && env->real == 4242 && env->number == 4242 && env->values[0] == 4242;
}

/* Of one rank without entries. */
static void make_global_plan(struct env* env) {
  shw_describe_options options = SHW_DESCRIBE_OPTIONS_INIT;
  shw_entry_batch entries = SHW_ENTRY_BATCH_INIT;
  shw_buffer* local = NULL;
  shw_error* error = NULL;
  options.world_size = 1;
  CHECK_OK(shw_global_plan_describe(&options, &entries, NULL, &local, &error));
  CHECK_OK(shw_global_plan_create(NULL, shw_buffer_part_data(local, 1), 1, shw_buffer_data(local),
                                  shw_buffer_part_offsets(local), 1, NULL, NULL, 0,
                                  &env->global_plan, &error));
  shw_buffer_release(local);
  env->layouts[0] = env->layout;
  env->plans[0] = env->bytes;
}

/* Of one rank, which exchanges nothing. */
static void make_load_exchange(struct env* env) {
  shw_plan* wants = NULL;
  shw_error* error = NULL;
  CHECK_OK(shw_load_planner_want_list(env->load_planner, env->plan, 1, &wants, &error));
  env->want_lists[0] = wants;
  CHECK_OK(shw_exchange_plans(env->want_lists, 1, &env->exchange_plan, &error));
  CHECK_OK(shw_load_exchange_create(env->load_planner, env->plan, env->exchange_plan,
                                    &env->load_exchange, &error));
}

static void make_communicator(struct env* env) {
  shw_error* error = NULL;
  CHECK_OK(shw_communicator_group_create(1, &env->communicator_group, &error));
  CHECK_OK(shw_communicator_create_fake(0, 1, &env->communicator, &error));
  CHECK_OK(shw_communicator_barrier(env->communicator, &env->communicator_call_value, &env->work,
                                    &error));
  CHECK_OK(shw_device_create_host(1, &env->device, &error));
}

/* Of one rank, with one sealed unit of one parameter. */
static void make_hsdp(struct env* env, const shw_layout_spec* spec) {
  shw_hsdp_param_batch batch = SHW_HSDP_PARAM_BATCH_INIT;
  static const uint64_t name_offsets[] = {0, 1};
  const shw_tensor tensor = float_tensor(values, tensor_shape, 2);
  shw_layout_spec mesh = *spec;
  shw_error* error = NULL;
  mesh.placement_kinds = NULL;
  CHECK_OK(shw_hsdp_mesh_create(&mesh, 0, &env->hsdp_mesh, &error));
  env->hsdp_options_value.mesh = env->hsdp_mesh;
  CHECK_OK(shw_hsdp_create(env->context, &env->hsdp_options_value, &env->hsdp, &error));
  CHECK_OK(shw_hsdp_unit_create(env->hsdp, "u", 1, NULL, &env->hsdp_unit, &error));
  batch.count = 1;
  batch.names = "p";
  batch.name_offsets = name_offsets;
  batch.tensors = &tensor;
  CHECK_OK(shw_hsdp_unit_add_params(env->hsdp_unit, &batch, &error));
  CHECK_OK(shw_hsdp_unit_seal(env->hsdp_unit, &error));
  env->memory[0] = env->bytes;
}

void make_env(struct env* env) {
  shw_error* error = NULL;
  memset(env, 0, sizeof(*env));
  make_structs(env);
  make_dlpack(env);
  static const int32_t kinds[] = {SHW_PLACEMENT_REPLICATE};
  shw_layout_spec spec = SHW_LAYOUT_SPEC_INIT;
  spec.mesh_ndim = 1;
  spec.mesh_shape = SHAPE(1);
  spec.placement_kinds = kinds;
  const char* path = path_in(scratch_directory(), "c");
  env->megatron = megatron();
  env->context = make_context();
  env->state = make_state();
  add_floats(env->state, "w", values, tensor_shape, 2);
  CHECK_OK(shw_buffer_create("abc", 3, &env->buffer, &error));
  CHECK_OK(shw_owned_tensor_create(SHW_FLOAT32, SHAPE(2), 1, &env->owned_tensor, &error));
  CHECK_OK(shw_layout_create(&spec, &env->layout, &error));
  CHECK_OK(shw_storage_create_memory(&env->storage, &error));
  CHECK_OK(shw_collective_create_single(&env->collective, &error));
  CHECK_OK(shw_collective_group_create(1, &env->collective_group, &error));
  CHECK_OK(shw_save(env->context, env->state, NULL, path, NULL, NULL, &env->report, &error));
  env->checkpoint = open_at(env->context, path);
  CHECK_OK(
      shw_save_planner_create(env->context, env->state, 0, 1, NULL, &env->save_planner, &error));
  CHECK_OK(
      shw_load_planner_create(env->checkpoint, env->state, 0, NULL, &env->load_planner, &error));
  CHECK_OK(shw_load_planner_local_plan(env->load_planner, &env->plan, &error));
  make_load_exchange(env);
  CHECK_OK(shw_job_description_from_checkpoint(env->checkpoint, &env->job_description, &error));
  make_global_plan(env);
  make_communicator(env);
  make_hsdp(env, &spec);
  CHECK_OK(shw_load_async(env->context, env->state, NULL, path, NULL, NULL, &env->job, &error));
  CHECK_OK(shw_job_wait(env->job, -1, &error));
  mark_outs(env);
}

void release_env(struct env* env) {
  shw_hsdp_unit_release(env->hsdp_unit);
  shw_hsdp_release(env->hsdp);
  shw_hsdp_mesh_release(env->hsdp_mesh);
  shw_device_release(env->device);
  shw_work_release(env->work);
  shw_communicator_release(env->communicator);
  shw_communicator_group_release(env->communicator_group);
  shw_job_description_release(env->job_description);
  shw_job_release(env->job);
  shw_global_plan_release(env->global_plan);
  shw_load_exchange_release(env->load_exchange);
  shw_plan_release(env->exchange_plan);
  shw_plan_release((shw_plan*)(uintptr_t)env->want_lists[0]);
  shw_plan_release(env->plan);
  shw_load_planner_release(env->load_planner);
  shw_save_planner_release(env->save_planner);
  shw_checkpoint_release(env->checkpoint);
  shw_report_release(env->report);
  shw_collective_group_release(env->collective_group);
  shw_collective_release(env->collective);
  shw_storage_release(env->storage);
  shw_layout_release(env->layout);
  shw_owned_tensor_release(env->owned_tensor);
  shw_buffer_release(env->buffer);
  shw_state_release(env->state);
  shw_context_release(env->context);
}

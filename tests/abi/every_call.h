/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls to every function with valid objects; the calls themselves are generated from the
 * headers. */
#ifndef SHARDWRIGHT_TESTS_ABI_EVERY_CALL_H
#define SHARDWRIGHT_TESTS_ABI_EVERY_CALL_H

#include "support/check.h"

enum { MOST_NULLS = 8 };

/* One valid object of each kind. */
struct env {
  shw_context* context;
  shw_buffer* buffer;
  shw_report* report;
  shw_owned_tensor* owned_tensor;
  shw_layout* layout;
  shw_state* state;
  shw_plan* plan;
  shw_storage* storage;
  shw_collective_group* collective_group;
  shw_collective* collective;
  shw_job* job;
  shw_checkpoint* checkpoint;
  shw_save_planner* save_planner;
  shw_load_planner* load_planner;
  shw_load_exchange* load_exchange;
  shw_job_description* job_description;
  shw_global_plan* global_plan;
  shw_communicator_group* communicator_group;
  shw_communicator* communicator;
  shw_work* work;
  shw_device* device;
  shw_hsdp_mesh* hsdp_mesh;
  shw_hsdp* hsdp;
  shw_hsdp_unit* hsdp_unit;
  const shw_layout* layouts[1];
  const void* plans[1];
  const shw_plan* want_lists[1];
  shw_plan* exchange_plan;
  shw_error* error;
  void* out; /* receives handles; must stay as it is when a call fails */
  const shw_api* api;
  const shw_megatron_api* megatron;
  uint64_t size;
  uint32_t number;
  double real;
  void* memory[1];
  int64_t values[8];
  int64_t shape[8];
  uint64_t offsets[8];
  uint32_t numbers[8];
  int32_t ranks[8];
  uint8_t bytes[64];
  struct DLManagedTensorVersioned* dlpack;
  struct DLManagedTensor* dlpack_legacy;
  struct DLManagedTensorVersioned* dlpack_out;
  struct DLManagedTensor* dlpack_legacy_out;
  struct DLManagedTensorVersioned* dlpack_list[1];
  struct DLManagedTensor* dlpack_legacy_list[1];
  shw_report_summary report_summary_value;
  shw_tensor tensor_value;
  shw_layout_spec layout_spec_value;
  shw_grid_shard grid_shard_value;
  shw_tensor_batch tensor_batch_value;
  shw_object_batch object_batch_value;
  shw_plan_item plan_item_value;
  shw_progress progress_value;
  shw_storage_stat storage_stat_value;
  shw_storage_vtable storage_vtable_value;
  shw_collective_call collective_call_value;
  shw_collective_vtable collective_vtable_value;
  shw_context_options context_options_value;
  shw_save_options save_options_value;
  shw_load_options load_options_value;
  shw_exchange_round exchange_round_value;
  shw_convert_options convert_options_value;
  shw_reshard_options reshard_options_value;
  shw_checkpoint_options checkpoint_options_value;
  shw_tensor_info tensor_info_value;
  shw_chunk_info chunk_info_value;
  shw_box_batch box_batch_value;
  shw_entry_batch entry_batch_value;
  shw_describe_options describe_options_value;
  shw_merge_options merge_options_value;
  shw_match_options match_options_value;
  shw_estimate_options estimate_options_value;
  shw_communicator_call communicator_call_value;
  shw_communicator_vtable communicator_vtable_value;
  shw_device_vtable device_vtable_value;
  shw_hsdp_options hsdp_options_value;
  shw_hsdp_unit_options hsdp_unit_options_value;
  shw_hsdp_param_batch hsdp_param_batch_value;
  shw_hsdp_box hsdp_box_value;
  shw_hsdp_allocator hsdp_allocator_value;
  shw_hsdp_phase_options hsdp_phase_options_value;
  shw_hsdp_memory hsdp_memory_value;
  shw_hsdp_estimate_unit hsdp_estimate_unit_value;
  shw_hsdp_estimate_world hsdp_estimate_world_value;
};

struct api_call {
  const char* name;
  shw_status (*call)(struct env* env, int null, shw_error** err);
  int null_count;
  int nulls[MOST_NULLS];
  const char* null_names[MOST_NULLS];
};

/* Makes all objects in a scratch directory; every out pointer holds a mark. */
void make_env(struct env* env);
void release_env(struct env* env);
/* The mark that `out` and the other out pointers hold. */
void* untouched(void);
/* All out pointers and numbers still hold their marks. */
int outs_untouched(const struct env* env);

#endif

// SPDX-License-Identifier: Apache-2.0
//
// The table behind struct_rules.h. A struct that grows keeps its oldest size and adds its new field
// here only when that field is reserved.
#include "capi/boundary/struct_rules.h"

#include <cstring>

#include "capi/boundary/struct_reader.h"

namespace shardwright::capi {
namespace {

template <typename T>
constexpr StructRules plain_rules(const char* name, uint32_t oldest, uint32_t flags = 0) {
  static_assert(sizeof(T) % 8 == 0 && alignof(T) == 8);
  return {name, static_cast<uint32_t>(sizeof(T)), oldest, flags, {}};
}

template <typename T>
constexpr StructRules rules_with(const char* name, uint32_t oldest,
                                 std::span<const ReservedField> reserved, uint32_t flags = 0) {
  StructRules rules = plain_rules<T>(name, oldest, flags);
  rules.reserved = reserved;
  return rules;
}

}  // namespace

#define SHW_RESERVED(type, field)              \
  ReservedField {                              \
    offsetof(type, field), sizeof(type::field) \
  }

void init_struct(void* target, uint32_t struct_size) noexcept {
  if (target == nullptr || struct_size < sizeof(uint32_t) || struct_size > kLargestStruct) return;
  std::memset(target, 0, struct_size);
  std::memcpy(target, &struct_size, sizeof(struct_size));
}

template <>
const StructRules& rules_of<shw_log_record>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_log_record, reserved0)};
  static constexpr StructRules kRules =
      rules_with<shw_log_record>("shw_log_record", SHW_LOG_RECORD_SIZE_V1, kReserved);
  return kRules;
}

template <>
const StructRules& rules_of<shw_report_summary>() {
  static constexpr StructRules kRules =
      plain_rules<shw_report_summary>("shw_report_summary", SHW_REPORT_SUMMARY_SIZE_V1);
  return kRules;
}

template <>
const StructRules& rules_of<shw_tensor>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_tensor, reserved0),
                                                SHW_RESERVED(shw_tensor, reserved1)};
  static constexpr StructRules kRules =
      rules_with<shw_tensor>("shw_tensor", SHW_TENSOR_SIZE_V1, kReserved,
                             SHW_TENSOR_READ_ONLY | SHW_TENSOR_PINNED | SHW_TENSOR_SUBBYTE_PADDED);
  return kRules;
}

template <>
const StructRules& rules_of<shw_layout_spec>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_layout_spec, reserved0),
                                                SHW_RESERVED(shw_layout_spec, reserved1)};
  static constexpr StructRules kRules =
      rules_with<shw_layout_spec>("shw_layout_spec", SHW_LAYOUT_SPEC_SIZE_V1, kReserved);
  return kRules;
}

template <>
const StructRules& rules_of<shw_grid_shard>() {
  static constexpr StructRules kRules = plain_rules<shw_grid_shard>(
      "shw_grid_shard", SHW_GRID_SHARD_SIZE_V1, SHW_GRID_FLAT | SHW_GRID_SHAPE_MAY_DIFFER);
  return kRules;
}

template <>
const StructRules& rules_of<shw_tensor_batch>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_tensor_batch, reserved0)};
  static constexpr StructRules kRules =
      rules_with<shw_tensor_batch>("shw_tensor_batch", SHW_TENSOR_BATCH_SIZE_V1, kReserved);
  return kRules;
}

template <>
const StructRules& rules_of<shw_mapping_spec>() {
  static constexpr StructRules kRules =
      plain_rules<shw_mapping_spec>("shw_mapping_spec", SHW_MAPPING_SPEC_SIZE_V1);
  return kRules;
}

template <>
const StructRules& rules_of<shw_object_batch>() {
  static constexpr StructRules kRules =
      plain_rules<shw_object_batch>("shw_object_batch", SHW_OBJECT_BATCH_SIZE_V1);
  return kRules;
}

template <>
const StructRules& rules_of<shw_plan_item>() {
  static constexpr StructRules kRules =
      plain_rules<shw_plan_item>("shw_plan_item", SHW_PLAN_ITEM_SIZE_V1);
  return kRules;
}

template <>
const StructRules& rules_of<shw_progress>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_progress, reserved0)};
  static constexpr StructRules kRules =
      rules_with<shw_progress>("shw_progress", SHW_PROGRESS_SIZE_V1, kReserved);
  return kRules;
}

template <>
const StructRules& rules_of<shw_storage_stat>() {
  static constexpr StructRules kRules =
      plain_rules<shw_storage_stat>("shw_storage_stat", SHW_STORAGE_STAT_SIZE_V1);
  return kRules;
}

template <>
const StructRules& rules_of<shw_storage_entry>() {
  static constexpr StructRules kRules =
      plain_rules<shw_storage_entry>("shw_storage_entry", SHW_STORAGE_ENTRY_SIZE_V1);
  return kRules;
}

template <>
const StructRules& rules_of<shw_storage_vtable>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_storage_vtable, reserved1),
                                                SHW_RESERVED(shw_storage_vtable, reserved2)};
  static constexpr StructRules kRules =
      rules_with<shw_storage_vtable>("shw_storage_vtable", SHW_STORAGE_VTABLE_SIZE_V1, kReserved);
  return kRules;
}

template <>
const StructRules& rules_of<shw_collective_call>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_collective_call, reserved0),
                                                SHW_RESERVED(shw_collective_call, group)};
  static constexpr StructRules kRules = rules_with<shw_collective_call>(
      "shw_collective_call", SHW_COLLECTIVE_CALL_SIZE_V1, kReserved);
  return kRules;
}

template <>
const StructRules& rules_of<shw_collective_vtable>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_collective_vtable, reserved3),
                                                SHW_RESERVED(shw_collective_vtable, reserved5),
                                                SHW_RESERVED(shw_collective_vtable, reserved6),
                                                SHW_RESERVED(shw_collective_vtable, reserved7)};
  static constexpr StructRules kRules = rules_with<shw_collective_vtable>(
      "shw_collective_vtable", SHW_COLLECTIVE_VTABLE_SIZE_V1, kReserved);
  return kRules;
}

template <>
const StructRules& rules_of<shw_allocator>() {
  static constexpr StructRules kRules =
      plain_rules<shw_allocator>("shw_allocator", SHW_ALLOCATOR_SIZE_V1);
  return kRules;
}

template <>
const StructRules& rules_of<shw_context_options>() {
  static constexpr StructRules kRules =
      plain_rules<shw_context_options>("shw_context_options", SHW_CONTEXT_OPTIONS_SIZE_V1);
  return kRules;
}

template <>
const StructRules& rules_of<shw_save_options>() {
  static constexpr StructRules kRules =
      plain_rules<shw_save_options>("shw_save_options", SHW_SAVE_OPTIONS_SIZE_V1);
  return kRules;
}

template <>
const StructRules& rules_of<shw_convert_options>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_convert_options, reserved0)};
  static constexpr StructRules kRules =
      rules_with<shw_convert_options>("shw_convert_options", SHW_CONVERT_OPTIONS_SIZE_V1, kReserved,
                                      SHW_CONVERT_WITHOUT_COMPARISON);
  return kRules;
}

template <>
const StructRules& rules_of<shw_reshard_options>() {
  static constexpr StructRules kRules =
      plain_rules<shw_reshard_options>("shw_reshard_options", SHW_RESHARD_OPTIONS_SIZE_V1,
                                       SHW_RESHARD_WITHOUT_COMPARISON | SHW_RESHARD_DRY_RUN);
  return kRules;
}

template <>
const StructRules& rules_of<shw_load_options>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_load_options, reserved0),
                                                SHW_RESERVED(shw_load_options, reserved1)};
  static constexpr StructRules kRules =
      rules_with<shw_load_options>("shw_load_options", SHW_LOAD_OPTIONS_SIZE_V1, kReserved);
  return kRules;
}

template <>
const StructRules& rules_of<shw_exchange_round>() {
  static constexpr StructRules kRules =
      plain_rules<shw_exchange_round>("shw_exchange_round", SHW_EXCHANGE_ROUND_SIZE_V1);
  return kRules;
}

template <>
const StructRules& rules_of<shw_checkpoint_options>() {
  static constexpr StructRules kRules =
      plain_rules<shw_checkpoint_options>("shw_checkpoint_options", SHW_CHECKPOINT_OPTIONS_SIZE_V1);
  return kRules;
}

template <>
const StructRules& rules_of<shw_tensor_info>() {
  static constexpr StructRules kRules =
      plain_rules<shw_tensor_info>("shw_tensor_info", SHW_TENSOR_INFO_SIZE_V1);
  return kRules;
}

template <>
const StructRules& rules_of<shw_chunk_info>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_chunk_info, reserved0)};
  static constexpr StructRules kRules =
      rules_with<shw_chunk_info>("shw_chunk_info", SHW_CHUNK_INFO_SIZE_V1, kReserved);
  return kRules;
}

template <>
const StructRules& rules_of<shw_box_batch>() {
  static constexpr StructRules kRules =
      plain_rules<shw_box_batch>("shw_box_batch", SHW_BOX_BATCH_SIZE_V1);
  return kRules;
}

template <>
const StructRules& rules_of<shw_entry_batch>() {
  static constexpr StructRules kRules =
      plain_rules<shw_entry_batch>("shw_entry_batch", SHW_ENTRY_BATCH_SIZE_V1);
  return kRules;
}

template <>
const StructRules& rules_of<shw_describe_options>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_describe_options, reserved0)};
  static constexpr StructRules kRules = rules_with<shw_describe_options>(
      "shw_describe_options", SHW_DESCRIBE_OPTIONS_SIZE_V1, kReserved);
  return kRules;
}

template <>
const StructRules& rules_of<shw_merge_options>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_merge_options, reserved0)};
  static constexpr StructRules kRules =
      rules_with<shw_merge_options>("shw_merge_options", SHW_MERGE_OPTIONS_SIZE_V1, kReserved);
  return kRules;
}

template <>
const StructRules& rules_of<shw_match_options>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_match_options, reserved1)};
  static constexpr StructRules kRules =
      rules_with<shw_match_options>("shw_match_options", SHW_MATCH_OPTIONS_SIZE_V1, kReserved,
                                    SHW_MATCH_FIRST_REPLICA | SHW_MATCH_RANK);
  return kRules;
}

template <>
const StructRules& rules_of<shw_estimate_options>() {
  static constexpr StructRules kRules =
      plain_rules<shw_estimate_options>("shw_estimate_options", SHW_ESTIMATE_OPTIONS_SIZE_V1,
                                        SHW_ESTIMATE_WITH_PLAN | SHW_ESTIMATE_WITH_CHUNKS);
  return kRules;
}

template <>
const StructRules& rules_of<shw_hsdp_options>() {
  static constexpr StructRules kRules = plain_rules<shw_hsdp_options>(
      "shw_hsdp_options", SHW_HSDP_OPTIONS_SIZE_V1, SHW_HSDP_UNORDERED);
  return kRules;
}

template <>
const StructRules& rules_of<shw_hsdp_unit_options>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_hsdp_unit_options, reserved0)};
  static constexpr StructRules kRules = rules_with<shw_hsdp_unit_options>(
      "shw_hsdp_unit_options", SHW_HSDP_UNIT_OPTIONS_SIZE_V1, kReserved,
      SHW_HSDP_UNIT_OFFLOAD | SHW_HSDP_UNIT_HOST_MEMORY);
  return kRules;
}

template <>
const StructRules& rules_of<shw_hsdp_param_batch>() {
  static constexpr StructRules kRules =
      plain_rules<shw_hsdp_param_batch>("shw_hsdp_param_batch", SHW_HSDP_PARAM_BATCH_SIZE_V1);
  return kRules;
}

template <>
const StructRules& rules_of<shw_hsdp_box>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_hsdp_box, reserved0)};
  static constexpr StructRules kRules =
      rules_with<shw_hsdp_box>("shw_hsdp_box", SHW_HSDP_BOX_SIZE_V1, kReserved);
  return kRules;
}

template <>
const StructRules& rules_of<shw_hsdp_allocator>() {
  static constexpr StructRules kRules =
      plain_rules<shw_hsdp_allocator>("shw_hsdp_allocator", SHW_HSDP_ALLOCATOR_SIZE_V1);
  return kRules;
}

template <>
const StructRules& rules_of<shw_hsdp_phase_options>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_hsdp_phase_options, reserved0)};
  static constexpr StructRules kRules = rules_with<shw_hsdp_phase_options>(
      "shw_hsdp_phase_options", SHW_HSDP_PHASE_OPTIONS_SIZE_V1, kReserved, SHW_HSDP_RECOMPUTE);
  return kRules;
}

template <>
const StructRules& rules_of<shw_hsdp_memory>() {
  static constexpr StructRules kRules =
      plain_rules<shw_hsdp_memory>("shw_hsdp_memory", SHW_HSDP_MEMORY_SIZE_V1);
  return kRules;
}

template <>
const StructRules& rules_of<shw_hsdp_estimate_unit>() {
  static constexpr StructRules kRules = plain_rules<shw_hsdp_estimate_unit>(
      "shw_hsdp_estimate_unit", SHW_HSDP_ESTIMATE_UNIT_SIZE_V1,
      SHW_HSDP_ESTIMATE_ROOT | SHW_HSDP_ESTIMATE_ADDS_GRADS | SHW_HSDP_ESTIMATE_HOST_MEMORY);
  return kRules;
}

template <>
const StructRules& rules_of<shw_hsdp_estimate_world>() {
  static constexpr StructRules kRules = plain_rules<shw_hsdp_estimate_world>(
      "shw_hsdp_estimate_world", SHW_HSDP_ESTIMATE_WORLD_SIZE_V1, SHW_HSDP_ESTIMATE_ORDERED_SUMS);
  return kRules;
}

template <>
const StructRules& rules_of<shw_communicator_call>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_communicator_call, reserved0)};
  static constexpr StructRules kRules = rules_with<shw_communicator_call>(
      "shw_communicator_call", SHW_COMMUNICATOR_CALL_SIZE_V1, kReserved);
  return kRules;
}

template <>
const StructRules& rules_of<shw_communicator_vtable>() {
  static constexpr ReservedField kReserved[] = {SHW_RESERVED(shw_communicator_vtable, reserved0),
                                                SHW_RESERVED(shw_communicator_vtable, reserved1)};
  static constexpr StructRules kRules = rules_with<shw_communicator_vtable>(
      "shw_communicator_vtable", SHW_COMMUNICATOR_VTABLE_SIZE_V1, kReserved);
  return kRules;
}

template <>
const StructRules& rules_of<shw_device_vtable>() {
  static constexpr StructRules kRules = plain_rules<shw_device_vtable>(
      "shw_device_vtable", SHW_DEVICE_VTABLE_SIZE_V1, SHW_DEVICE_IS_HOST);
  return kRules;
}

template <>
const StructRules& rules_of<shw_plugin>() {
  static constexpr StructRules kRules = plain_rules<shw_plugin>("shw_plugin", SHW_PLUGIN_SIZE_V1);
  return kRules;
}

#undef SHW_RESERVED

}  // namespace shardwright::capi

// SPDX-License-Identifier: Apache-2.0
//
// What the struct reader must know about each public struct: our size, the oldest published size,
// the flags that exist, and which fields are reserved. Constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <fmt/format.h>

#include "shardwright/shardwright.h"

namespace shardwright::capi {

struct ReservedField {
  uint32_t offset = 0;
  uint32_t size = 0;
};

struct StructRules {
  const char* name = "";
  uint32_t size = 0;
  uint32_t oldest_size = 0;
  uint32_t known_flags = 0;
  std::span<const ReservedField> reserved;
};

template <typename T>
const StructRules& rules_of();

// Fills `target` (of the caller's size, unless that is no size at all) as the X_INIT macro does.
void init_struct(void* target, uint32_t struct_size) noexcept;

template <>
const StructRules& rules_of<shw_log_record>();
template <>
const StructRules& rules_of<shw_report_summary>();
template <>
const StructRules& rules_of<shw_tensor>();
template <>
const StructRules& rules_of<shw_layout_spec>();
template <>
const StructRules& rules_of<shw_grid_shard>();
template <>
const StructRules& rules_of<shw_tensor_batch>();
template <>
const StructRules& rules_of<shw_object_batch>();
template <>
const StructRules& rules_of<shw_mapping_spec>();
template <>
const StructRules& rules_of<shw_plan_item>();
template <>
const StructRules& rules_of<shw_progress>();
template <>
const StructRules& rules_of<shw_storage_stat>();
template <>
const StructRules& rules_of<shw_storage_entry>();
template <>
const StructRules& rules_of<shw_storage_vtable>();
template <>
const StructRules& rules_of<shw_collective_call>();
template <>
const StructRules& rules_of<shw_collective_vtable>();
template <>
const StructRules& rules_of<shw_communicator_call>();
template <>
const StructRules& rules_of<shw_communicator_vtable>();
template <>
const StructRules& rules_of<shw_device_vtable>();
template <>
const StructRules& rules_of<shw_allocator>();
template <>
const StructRules& rules_of<shw_context_options>();
template <>
const StructRules& rules_of<shw_save_options>();
template <>
const StructRules& rules_of<shw_convert_options>();
template <>
const StructRules& rules_of<shw_load_options>();
template <>
const StructRules& rules_of<shw_checkpoint_options>();
template <>
const StructRules& rules_of<shw_tensor_info>();
template <>
const StructRules& rules_of<shw_chunk_info>();
template <>
const StructRules& rules_of<shw_box_batch>();
template <>
const StructRules& rules_of<shw_entry_batch>();
template <>
const StructRules& rules_of<shw_describe_options>();
template <>
const StructRules& rules_of<shw_merge_options>();
template <>
const StructRules& rules_of<shw_match_options>();
template <>
const StructRules& rules_of<shw_estimate_options>();
template <>
const StructRules& rules_of<shw_hsdp_options>();
template <>
const StructRules& rules_of<shw_hsdp_unit_options>();
template <>
const StructRules& rules_of<shw_hsdp_param_batch>();
template <>
const StructRules& rules_of<shw_hsdp_box>();
template <>
const StructRules& rules_of<shw_hsdp_allocator>();
template <>
const StructRules& rules_of<shw_hsdp_phase_options>();
template <>
const StructRules& rules_of<shw_hsdp_memory>();
template <>
const StructRules& rules_of<shw_hsdp_estimate_unit>();
template <>
const StructRules& rules_of<shw_hsdp_estimate_world>();
template <>
const StructRules& rules_of<shw_plugin>();

}  // namespace shardwright::capi

// SPDX-License-Identifier: Apache-2.0
#include "capi/hsdp/settings.h"

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "shardwright/hsdp.h"
#include "shardwright/hsdp_phases.h"

namespace shardwright::capi {
namespace {

using hsdp::UnitSettings;

struct Switch {
  int32_t key;
  const char* name;
  bool UnitSettings::* field;
};
constexpr Switch kSwitches[] = {
    {SHW_HSDP_REQUIRES_GRADIENT_SYNC, "requires_gradient_sync",
     &UnitSettings::requires_gradient_sync},
    {SHW_HSDP_REQUIRES_ALL_REDUCE, "requires_all_reduce", &UnitSettings::requires_all_reduce},
    {SHW_HSDP_RESHARD_AFTER_BACKWARD, "reshard_after_backward",
     &UnitSettings::reshard_after_backward},
    {SHW_HSDP_UNSHARD_IN_BACKWARD, "unshard_in_backward", &UnitSettings::unshard_in_backward},
    {SHW_HSDP_KEEP_UNSHARDED, "keep_unsharded", &UnitSettings::keep_unsharded_memory},
};

const Switch* find_switch(int32_t key) {
  for (const Switch& each : kSwitches)
    if (each.key == key) return &each;
  return nullptr;
}

Status no_key(int32_t key) {
  return bad_argument("key", fmt::format("{} is no value that is set here", key));
}

Status out_of_range_value(const char* name, int64_t value, int64_t last) {
  return bad_argument("value", fmt::format("{} is {}, not 0 to {}", name, value, last));
}

template <typename Value>
Status set_number(const char* name, int64_t value, int64_t last, Value* to) {
  if (value < 0 || value > last) return out_of_range_value(name, value, last);
  *to = static_cast<Value>(value);
  return {};
}

}  // namespace

Result<bool> switch_value(const char* name, int64_t value) {
  if (value != 0 && value != 1) return out_of_range_value(name, value, 1);
  return value == 1;
}

bool is_unit_setting(int32_t key) {
  return key >= SHW_HSDP_REQUIRES_GRADIENT_SYNC && key <= SHW_HSDP_UNUSED_POLICY;
}

Status set_unit_setting(int32_t key, int64_t value, UnitSettings* settings) {
  if (const Switch* found = find_switch(key); found != nullptr) {
    SHW_ASSIGN_OR_RETURN(settings->*found->field, switch_value(found->name, value));
    return {};
  }
  switch (key) {
    case SHW_HSDP_RESHARD_AFTER_FORWARD:
      return set_number("reshard_after_forward", value, SHW_HSDP_RESHARD_SECONDARY,
                        &settings->reshard_after_forward);
    case SHW_HSDP_SECONDARY_SIZE:
      return set_number("secondary_size", value, INT32_MAX, &settings->secondary_size);
    case SHW_HSDP_REDUCE_OP:
      return set_number("reduce_op", value, SHW_HSDP_REDUCE_SUM, &settings->operation);
    case SHW_HSDP_UNUSED_POLICY:
      return set_number("unused_policy", value, SHW_HSDP_UNUSED_SKIP, &settings->unused);
    default:
      return no_key(key);
  }
}

Result<int64_t> unit_setting(int32_t key, const UnitSettings& settings) {
  if (const Switch* found = find_switch(key); found != nullptr)
    return settings.*found->field ? 1 : 0;
  switch (key) {
    case SHW_HSDP_RESHARD_AFTER_FORWARD:
      return static_cast<int64_t>(settings.reshard_after_forward);
    case SHW_HSDP_SECONDARY_SIZE:
      return settings.secondary_size;
    case SHW_HSDP_REDUCE_OP:
      return static_cast<int64_t>(settings.operation);
    case SHW_HSDP_UNUSED_POLICY:
      return static_cast<int64_t>(settings.unused);
    default:
      return no_key(key);
  }
}

Status set_unit_setting(int32_t key, double value, UnitSettings* settings) {
  if (key != SHW_HSDP_DIVIDE_FACTOR) return no_key(key);
  settings->divide_factor = value;
  return {};
}

Result<double> real_unit_setting(int32_t key, const UnitSettings& settings) {
  if (key != SHW_HSDP_DIVIDE_FACTOR) return no_key(key);
  return settings.divide_factor;
}

}  // namespace shardwright::capi

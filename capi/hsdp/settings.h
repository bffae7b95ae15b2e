// SPDX-License-Identifier: Apache-2.0
//
// SHW_HSDP_ keys as fields of the settings of a unit. Pure.
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "core/hsdp/options.h"

namespace shardwright::capi {

// Whether the key is one of a unit that shw_hsdp_unit_set_i64 takes.
bool is_unit_setting(int32_t key);
// INVALID_ARGUMENT for a key that is none, and for a value out of its range as far as that is known
// here (true or false is 0 or 1).
Status set_unit_setting(int32_t key, int64_t value, hsdp::UnitSettings* settings);
Result<int64_t> unit_setting(int32_t key, const hsdp::UnitSettings& settings);
Status set_unit_setting(int32_t key, double value, hsdp::UnitSettings* settings);
Result<double> real_unit_setting(int32_t key, const hsdp::UnitSettings& settings);

// 0 or 1.
Result<bool> switch_value(const char* name, int64_t value);

}  // namespace shardwright::capi

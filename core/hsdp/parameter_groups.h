// SPDX-License-Identifier: Apache-2.0
//
// Which parameters of a unit travel together: those that are stored in one dtype and all sharded or
// all replicated. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "core/base/result.h"
#include "core/hsdp/dtype_policy.h"
#include "core/hsdp/options.h"
#include "core/hsdp/unit_layout.h"

namespace shardwright::hsdp {

struct ParameterGroup {
  DTypePolicy dtypes;
  bool replicate = false;
  std::vector<ParameterSpec> specs;
  std::vector<size_t> numbers;  // in the unit, ascending; one per spec
};

// In the order of their first parameters. Failures of dtype_policy.
Result<std::vector<ParameterGroup>> group_parameters(std::vector<ParameterSpec> parameters,
                                                     const UnitOptions& options);

}  // namespace shardwright::hsdp

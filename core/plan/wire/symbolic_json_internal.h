// SPDX-License-Identifier: Apache-2.0
//
// Symbolic plan buffers as JSON text with "schema": 1. The limit counts tensors, objects, layouts
// and boxes each by themselves.
#pragma once

#include <cstdint>
#include <string>

#include "core/plan/symbolic_description.h"

namespace shardwright::plan::internal {

std::string symbolic_save_json(const SymbolicDescription& description, uint64_t item_limit);
std::string symbolic_part_json(const SymbolicPart& part, uint64_t item_limit);
std::string symbolic_local_json(const LocalSymbolicPlan& plan, uint64_t item_limit);

}  // namespace shardwright::plan::internal

// SPDX-License-Identifier: Apache-2.0
//
// The plan buffers of all ranks that describe symbolically. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/plan/rank_descriptions.h"
#include "core/plan/wire/wire.h"

namespace shardwright::plan {

// The descriptions of all ranks from plan buffers of kind SymbolicLocal in rank order. Descriptions
// with equal bytes are read once. Failures name the rank.
Result<RankDescriptions> open_symbolic_locals(std::span<const std::span<const std::byte>> buffers);

}  // namespace shardwright::plan

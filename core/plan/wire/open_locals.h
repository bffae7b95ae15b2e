// SPDX-License-Identifier: Apache-2.0
//
// The local plans of all ranks, read where they lie. Pure function.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/result.h"
#include "core/plan/rank_plans.h"

namespace shardwright::plan {

// buffers: local plans in rank order, which must outlive what is returned. Descriptions with equal
// bytes are read once. Failures name the rank: those of the checks of wire.h, and INVALID_ARGUMENT
// for a plan of another position, options that differ, or no plan at all.
Result<RankPlans> open_local_saves(std::span<const std::span<const std::byte>> buffers);

}  // namespace shardwright::plan

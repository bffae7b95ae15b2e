// SPDX-License-Identifier: Apache-2.0
//
// What a rank describes by layouts as an explicit local plan, box by box. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/plan/rank_descriptions.h"
#include "core/plan/save_plan.h"
#include "core/plan/wire/wire.h"

namespace shardwright::plan {

// O(entries of the rank). The part fits the description.
Result<LocalSavePlan> expand_local_plan(const RankDescriptions& ranks, int32_t rank);
Result<LocalSavePlan> expand_local_plan(const LocalSymbolicPlan& plan);
// Of a buffer of kind SymbolicLocal, as a buffer of kind LocalSave.
Result<Bytes> explicit_local_save(std::span<const std::byte> buffer);

}  // namespace shardwright::plan

// SPDX-License-Identifier: Apache-2.0
//
// Plans out of descriptions in flat arrays, for hosts that have no state of ours (the way back:
// entry_columns.h). Pure functions; every number of the arrays is checked.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/layout/layout.h"
#include "core/plan/entry_arrays.h"
#include "core/plan/local_plan.h"
#include "core/plan/plan_options.h"
#include "core/plan/save_plan.h"

namespace shardwright::plan {

// Rank and world size of a local plan (0 = not known: it may be merged at any place), the text that
// all ranks must have alike, and kinds by pattern.
struct DescribeRules {
  int32_t rank = 0;
  int32_t world_size = 1;
  std::string_view agreement;
  std::vector<KindPattern> kinds;
};

// The boxes as they stand. INVALID_ARGUMENT naming the entry, OUT_OF_RANGE for a box that leaves
// its tensor, ALREADY_EXISTS for a name that comes twice, UNIMPLEMENTED for a dtype without a name.
Result<LocalPlan> describe_local(const EntryArrays& entries, const DescribeRules& rules);
// The same by layouts: one per entry or none at all; an entry with a layout lists no boxes, nullptr
// = its boxes count, and a replicated or rank_local tensor must be whole. The arrays numbers,
// order, secondary and attributes are absent.
Result<LocalPlan> describe_local(const EntryArrays& entries, std::span<const Layout* const> layouts,
                                 const DescribeRules& rules);
// What is stored: place = rank, no order, nothing secondary.
Result<GlobalSavePlan> describe_merged(const EntryArrays& entries,
                                       std::span<const KindPattern> kinds);

}  // namespace shardwright::plan

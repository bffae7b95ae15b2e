// SPDX-License-Identifier: Apache-2.0
//
// Merging of described plans: local plans of all ranks in, the merged plan and what each rank keeps
// out. The same engine as make_global_plan, with the choice of owners and numbers by preset and
// without files. Pure function, no threads. Equal inputs give equal bytes.
#pragma once

#include <cstddef>
#include <span>

#include "core/plan/plan_options.h"
#include "core/plan/wire/plan_parts.h"

namespace shardwright::plan {

// Number of a box that its rank does not keep.
inline constexpr uint32_t kNotKept = 0xFFFFFFFF;

// plans[r] is the local plan of rank r. Part 0 of the result is the merged plan, part 1 + r says
// what rank r keeps: for each of its boxes, as EntryColumns lists them, the number of its chunk in
// its tensor (0 for an object), or kNotKept where another rank writes it. Failures are those of
// make_global_plan (INVALID_ARGUMENT naming ranks, boxes and values; those of the cover proof have
// the detail "cover") and of the decoder (DATA_LOSS, UNIMPLEMENTED).
Result<PlanParts> merge_plans(std::span<const std::span<const std::byte>> plans,
                              const MergeRules& rules);

}  // namespace shardwright::plan

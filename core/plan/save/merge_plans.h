// SPDX-License-Identifier: Apache-2.0
//
// Merging of described plans: local plans of all ranks in, the merged plan and what each rank keeps
// out. The same engine as make_global_plan, with the choice of owners and numbers by preset and
// without files. Pure function, no threads. Equal inputs give equal bytes.
#pragma once

#include <cstddef>
#include <span>

#include "core/plan/plan_options.h"
#include "core/plan/wire/plan_encoder.h"

namespace shardwright::plan {

// plans[r] is the local plan of rank r. Part 0 of the result is the merged plan, part 1 + r the
// kept plan of rank r. Failures are those of make_global_plan (INVALID_ARGUMENT naming ranks, boxes
// and values; those of the cover proof have the detail "cover") and of the decoder (DATA_LOSS,
// UNIMPLEMENTED).
Result<PlanParts> merge_plans(std::span<const std::span<const std::byte>> plans,
                              const MergeRules& rules);

}  // namespace shardwright::plan

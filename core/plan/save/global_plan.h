// SPDX-License-Identifier: Apache-2.0
//
// The second step of a save: merge all local plans, find conflicts, drop replicas, choose owners, lay
// out files, prove cover. Then each rank takes its own WriteList. No I/O, no threads, no transport.
// Equal inputs give equal bytes. O(n log n) in items.
#pragma once

#include <span>
#include <string>

#include "core/base/result.h"
#include "core/plan/local_view.h"
#include "core/plan/plan_options.h"
#include "core/plan/save_plan.h"

namespace shardwright::plan {

// locals[i] is rank i's plan. Owners by balanced: chunks with one holder count first, the others
// go, largest first, to the holder with the fewest bytes so far, ties to the lowest rank; then
// objects likewise. Other rules and presets: merge_policy.h. Failures (INVALID_ARGUMENT naming
// ranks, boxes and values): missing or doubled ranks, options that differ, dtype, shape, kind or
// path that differ, replicas whose digests differ (with how to declare rank_local), overlapping
// chunks, holes.
Result<GlobalSavePlan> make_global_plan(std::span<const LocalSavePlan> locals,
                                        const SaveRules& rules, std::string generation);
// The same from plans that stay where they are (core/plan/local_view.h,
// core/plan/wire/open_locals.h).
Result<GlobalSavePlan> make_global_plan(const LocalViews& locals, const SaveRules& rules,
                                        std::string generation);

}  // namespace shardwright::plan

// SPDX-License-Identifier: Apache-2.0
//
// The second step of a save: merge all local plans, find conflicts, drop replicas, choose owners,
// prove cover. Then each rank takes its own WriteList. No I/O, no threads, no transport. Equal jobs
// give equal plans, however their ranks describe them.
#pragma once

#include <span>

#include "core/base/result.h"
#include "core/plan/plan_options.h"
#include "core/plan/rank_plans.h"
#include "core/plan/save_plan.h"

namespace shardwright::plan {

// Owners by balanced: chunks with one holder count first; then tensors by their largest chunk,
// largest first, each in lockstep (owners.cc) to the replica whose ranks bear fewest bytes so far,
// ties to the lowest; then objects likewise. Other rules and presets: merge_policy.h.
// Failures (INVALID_ARGUMENT naming ranks, boxes and values): dtype, shape, kind or path that
// differ, replicas whose digests differ (with how to declare rank_local), overlapping chunks,
// holes. The cost is that of the distinct descriptions and, for every kind of tensor that is cut by
// a rule (equal shape, cuts and holders), O(ranks); boxes cost what sorting them costs. The plan
// has no generation.
Result<GlobalSavePlan> make_global_plan(const RankPlans& ranks, const SaveRules& rules);

// What one rank writes, item by item.
WriteList write_list_of(const GlobalSavePlan& plan, const RankView& rank);

}  // namespace shardwright::plan

// SPDX-License-Identifier: Apache-2.0
//
// Load planning: matches the boxes that a state wants with the chunks that a checkpoint stores, and
// proves that every wanted element is filled exactly once. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/plan/load/catalog_index.h"
#include "core/plan/load_plan.h"
#include "core/plan/plan_options.h"
#include "core/state/state.h"

namespace shardwright::plan {

// stored must have passed check_catalog and prove_all_covers (copies allowed: each element is read
// once, from the copy with the lowest number). Failures: NOT_FOUND with the three nearest names
// (missing = error), INVALID_ARGUMENT for shape or dtype that differ (both values), for unexpected
// = error, for boxes of one entry that share local memory; UNIMPLEMENTED for a sub-byte tensor of
// another shape. A rank_local entry of the state matches only the stored entry of the same rank;
// others match what CatalogIndex finds. Replicated wants match sharded chunks and the other way
// round. Stored entries that belong to other ranks are not unexpected. generation of the result is
// empty: the caller that knows it sets it. The preset does not change what a load plan says.
Result<LoadPlan> make_load_plan(const State& state, const Catalog& stored, const LoadRules& rules,
                                int32_t rank);
// The same with an index that is there already.
Result<LoadPlan> make_load_plan(const State& state, const CatalogIndex& stored,
                                const LoadRules& rules, int32_t rank);

// Whether a plan, which may come from elsewhere, fits this state and this catalog: every number in
// range, every read inside both its chunk and its piece, every element of every loaded entry filled
// exactly once (by corner sums, linear), every dtype and every shape that differ listed.
// FAILED_PRECONDITION naming what differs; INVALID_ARGUMENT for boxes of one entry that share local
// memory.
Status check_load_plan(const LoadPlan& plan, const State& state, const Catalog& stored);

}  // namespace shardwright::plan

// SPDX-License-Identifier: Apache-2.0
//
// Whether a load plan fits what it is executed on. Pure function.
#pragma once

#include "core/base/status.h"
#include "core/plan/catalog.h"
#include "core/plan/load_plan.h"
#include "core/state/state.h"

namespace shardwright::plan {

// Whether the plan, which may come from elsewhere, fits this state and this catalog: every number
// in range, every read inside both its chunk and its piece, every element of every loaded entry
// filled exactly once (by corner sums, linear), every dtype and every shape that differ listed.
// FAILED_PRECONDITION naming what differs; INVALID_ARGUMENT for boxes of one entry that share local
// memory.
Status check_load_plan(const LoadPlan& plan, const State& state, const Catalog& stored);

}  // namespace shardwright::plan

// SPDX-License-Identifier: Apache-2.0
//
// A rank's state as a description: what make_local_plan is to the explicit planner. Pure function.
#pragma once

#include <string>

#include "core/plan/save/local_plan.h"
#include "core/plan/save_plan.h"
#include "core/plan/symbolic_description.h"

namespace shardwright::plan {

// Whether plans of such states are made by arithmetic: some tensor has a layout, and the symbolic
// planner follows the rules.
bool plans_symbolically(const State& state, const SaveRules& rules);

// Layouts count where they give the pieces of the state; other tensors are described by their boxes.
// digests as in make_local_plan; agreement: the text that all ranks must have alike. The failures of
// make_local_plan.
Result<LocalSymbolicPlan> describe_state(const State& state, const SaveRules& rules,
                                         RankPosition position, const ReplicaDigests& digests,
                                         std::string agreement);

}  // namespace shardwright::plan

// SPDX-License-Identifier: Apache-2.0
//
// Proof, before the first byte is read, that a load plan fits a state and a checkpoint: a host may
// have kept the plan or moved it between processes. Pure, any thread.
#pragma once

#include "core/plan/catalog.h"
#include "core/plan/load/load_plan.h"
#include "core/state/state.h"

namespace shardwright::exec::internal {

// FAILED_PRECONDITION when an item leaves its chunk or its piece, or when an entry that is not
// listed as missing is not filled exactly once; UNIMPLEMENTED for casts and devices that are not
// supported; INVALID_ARGUMENT for read-only memory.
Status prove_load_plan(const plan::Catalog& stored, const plan::LoadPlan& plan, const State& state);

// The part of it that the planner does not prove, for a plan that was made for this very state just before: memory can
// be written and casts are supported.
Status check_targets(const plan::LoadPlan& plan, const State& state);

}  // namespace shardwright::exec::internal

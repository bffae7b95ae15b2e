// SPDX-License-Identifier: Apache-2.0
//
// The first step of a save: a rank's state as a local plan, with digests of what replicas must
// agree on. Ranks send it to whoever merges (save/global_plan.h). No I/O, no threads, no transport.
// Equal inputs give equal bytes.
#pragma once

#include <string>

#include "core/plan/describe/replica_digests.h"
#include "core/plan/local_plan.h"
#include "core/plan/save_plan.h"

namespace shardwright::plan {

// Layouts count where they give the pieces of the state; other tensors are described by their
// boxes. agreement: the text that all ranks must have alike. INVALID_ARGUMENT for a position, rules
// or numbers of digests that cannot be, and for a replicated or rank_local tensor that is not
// whole.
Result<LocalPlan> describe_state(const State& state, const SaveRules& rules, RankPosition position,
                                 const ReplicaDigests& digests, std::string agreement);

}  // namespace shardwright::plan

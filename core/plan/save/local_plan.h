// SPDX-License-Identifier: Apache-2.0
//
// The first step of a save: a rank's state as a local plan, with digests of what replicas must agree
// on. Ranks send it to whoever merges (global_plan.h). No I/O, no threads, no transport. Equal inputs
// give equal bytes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/plan/plan_options.h"
#include "core/plan/save_plan.h"
#include "core/state/state.h"

namespace shardwright::plan {

// Content digests that replicas are compared by. Of a replicated tensor: its whole in row-major
// order, however it is cut here. Of a sharded one: its boxes in the order of their offsets, for
// other ranks may hold the same boxes.
struct ReplicaDigests {
  std::vector<Digest128> tensors;  // one per State tensor, all-zero = skip
  std::vector<Digest128> objects;
};

// Which State entries need a content digest under these rules (kAuto: objects, and tensors that are
// whole on this rank up to kReplicaDigestLimitBytes; kAll: every entry that is not rank_local).
struct DigestNeeds {
  struct Tensor {
    size_t index = 0;
    bool by_boxes = false;  // it is sharded
    friend bool operator==(const Tensor&, const Tensor&) = default;
  };
  std::vector<Tensor> tensors;
  std::vector<size_t> objects;
};
DigestNeeds replica_digest_needs(const State& state, const SaveRules& rules);

Result<LocalSavePlan> make_local_plan(const State& state, const SaveRules& rules,
                                      RankPosition position, const ReplicaDigests& digests);

// Rules as "option=value" lines; make_local_plan puts them into options_text. A caller with further
// options that ranks must share appends lines and sets options_digest again.
std::string save_rules_text(const SaveRules& rules);

}  // namespace shardwright::plan

// SPDX-License-Identifier: Apache-2.0
//
// Content digests of what replicas must agree on. No I/O, no threads.
#pragma once

#include <cstddef>
#include <vector>

#include "core/plan/local_plan.h"
#include "core/plan/plan_options.h"
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

// Those that a local plan carries, one per tensor and object of the state or none.
ReplicaDigests replica_digests_of(const LocalPlan& plan);

}  // namespace shardwright::plan

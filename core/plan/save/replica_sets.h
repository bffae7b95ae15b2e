// SPDX-License-Identifier: Apache-2.0
//
// Agreement on replicas in 16 bytes per rank. When ranks save again what they have saved before,
// nobody needs their descriptions: it is enough that each is what it was, and that the replicas of
// each entry are still equal. Entries with the same holders make one set. In a set of n ranks, the
// rank at position p adds h(D, p) - h(D, p + 1 mod n), where D is its digest of the contents of the
// set's entries and h a 128-bit hash that also takes the set's number: the terms of all positions
// cancel iff all D are equal (else with a chance of about 2^-128). A rank's checksum is the sum of
// its terms and of a hash of its key; checksums are added lane by lane. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/describe/replica_digests.h"
#include "core/plan/rank_plans.h"
#include "core/plan/save_plan.h"

namespace shardwright::plan {

// Sums modulo 2^64 in two lanes.
struct Checksum {
  uint64_t first = 0;
  uint64_t second = 0;
  friend bool operator==(const Checksum&, const Checksum&) = default;
  Checksum& operator+=(const Checksum& other) {
    first += other.first;
    second += other.second;
    return *this;
  }
};

// A set as one of its ranks sees it: the entries of its State, in an order that all of them share.
struct ReplicaSet {
  uint32_t number = 0;
  uint32_t position = 0;  // of this rank among the holders
  uint32_t size = 0;      // holders, at least 2
  std::vector<uint32_t> tensors;
  std::vector<uint32_t> objects;
};
using ReplicaSets = std::vector<ReplicaSet>;

// What the content digests of the plans are compared by, per rank: entries that several ranks hold
// and have a digest of, of sharded tensors those ranks that hold the same boxes. The plans passed
// make_global_plan.
Result<std::vector<ReplicaSets>> replica_sets(const RankPlans& ranks);

// Digest of the keys of all ranks in rank order.
Digest128 world_key(std::span<const Digest128> keys);
// Hash of a rank's key in a world: what its checksum is when it holds no replica.
Checksum key_checksum(const Digest128& key, const Digest128& world);
// Checksum of the rank. digests: one per tensor and object of its State.
Checksum rank_checksum(const Digest128& key, const Digest128& world, const ReplicaSets& sets,
                       const ReplicaDigests& digests);

}  // namespace shardwright::plan

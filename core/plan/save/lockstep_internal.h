// SPDX-License-Identifier: Apache-2.0
//
// The balanced rule for what several ranks hold. The shards of a tensor that all have equally many
// holders are given in lockstep: to the k-th holder of each, for the k whose ranks together bear
// least so far, of equal ones the lowest. So the ranks that write a grid follow a formula, whatever
// the sizes of its last shards, and a replica is written by one group of ranks. A tensor whose
// shards have different numbers of holders goes shard by shard. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardwright::plan::internal {

// The k of the rule. holder(shard, k): the rank; every shard has `replicas` of them, ascending.
template <typename Holder>
uint32_t lightest_replica(size_t shards, size_t replicas, std::span<const uint64_t> loads,
                          const Holder& holder) {
  uint32_t best = 0;
  uint64_t least = 0;
  for (uint32_t k = 0; k < replicas; ++k) {
    uint64_t sum = 0;
    for (size_t shard = 0; shard < shards; ++shard) sum += loads[holder(shard, k)];
    if (k == 0 || sum < least) {
      best = k;
      least = sum;
    }
  }
  return best;
}

}  // namespace shardwright::plan::internal

// SPDX-License-Identifier: Apache-2.0
//
// The two rules of a greedy choice of writers, for explicit merges, for global plans and for
// plain arrays: who gets what is next, and Megatron's order of what is next. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

namespace shardwright::plan::internal {

// Number of the holder with the least load, of equal ones the first. At least one holder; holders
// mostly ascend by rank, so that ties go to the lowest.
template <typename Holders, typename LoadOf>
size_t lightest_of(const Holders& holders, const LoadOf& load_of) {
  size_t best = 0;
  for (size_t i = 1; i < holders.size(); ++i) {
    if (load_of(holders[i]) < load_of(holders[best])) best = i;
  }
  return best;
}

// What Megatron's order looks at before names and numbers: what is not secondary comes first, then
// what fewer ranks hold, then what weighs more (megatron-core 0.16, distribute_shards_to_ranks).
using GreedyKey = std::tuple<bool, uint64_t, uint64_t>;
inline GreedyKey greedy_key(bool secondary, uint64_t holders, uint64_t weight) {
  return {secondary, holders, ~weight};
}

}  // namespace shardwright::plan::internal

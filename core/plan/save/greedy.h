// SPDX-License-Identifier: Apache-2.0
//
// Megatron's greedy choice on plain arrays, for merges and for hosts that have nothing else
// (megatron-core 0.16, distribute_shards_to_ranks). Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"

namespace shardwright::plan {

// Shards in the order of their ids; shard i is held by the ranks of set sets[i], which is
// holders[set_offsets[s]] to holders[set_offsets[s + 1]], ascending.
struct GreedyShards {
  std::span<const uint64_t> weights;
  std::span<const uint32_t> sets;
  std::span<const uint8_t> secondary;  // 1 = chosen after all others; empty = none
  std::span<const uint64_t> set_offsets;
  std::span<const int32_t> holders;
  int32_t rank_count = 0;
};

// One owner per shard. Order of choice: not secondary first, fewer holders, larger weight, lower
// number; each goes to its holder with the least weight so far, ties to the lowest rank. O(n log n)
// and the holders of all shards. INVALID_ARGUMENT for sets that are empty, out of range or do not
// ascend.
Result<std::vector<int32_t>> choose_greedily(const GreedyShards& shards);

}  // namespace shardwright::plan

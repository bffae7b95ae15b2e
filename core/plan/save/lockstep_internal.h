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
#include <functional>
#include <map>
#include <queue>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "core/plan/save/holder_map_internal.h"
#include "core/plan/save/shard_grid_internal.h"

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

// The columns of a tensor that hold elements, and what is in them.
struct ColumnSizes {
  const HolderMap* map = nullptr;
  std::span<const ColumnRun> runs;  // borrowed while the map stays
  uint64_t bits = 0;                // of an element
};

// Gives tensors and objects of one holder map after the other to replicas by the rule. What the
// ranks of each replica bear together is added up when a map comes and kept while it stays: the
// ranks of different replicas are different ones. So the cost is O(ranks) per change of the map and
// O(log replicas) per tensor. One thread.
class Lockstep {
 public:
  // loads: bytes that each rank writes so far.
  explicit Lockstep(std::vector<uint64_t>* loads) : loads_(*loads) {}
  // The replica that writes the tensor. All of its columns have that many holders.
  uint32_t choose(const ColumnSizes& tensor, uint32_t replicas);
  // What was chosen is in the loads; before they are read or changed by others.
  void settle();

 private:
  struct Bearing {
    uint64_t bytes = 0;
    uint32_t replica = 0;
    friend auto operator<=>(const Bearing&, const Bearing&) = default;
  };
  using Chosen = std::tuple<const ColumnRun*, uint64_t, uint32_t>;  // runs, bits, replica

  bool goes_on(const ColumnSizes& tensor) const;
  void begin(const ColumnSizes& tensor, uint32_t replicas);

  std::vector<uint64_t>& loads_;
  const HolderMap* map_ = nullptr;  // of what was chosen last, null when loads_ says all
  std::span<const ColumnRun> columns_;
  std::priority_queue<Bearing, std::vector<Bearing>, std::greater<>> bearings_;
  struct Times {
    std::span<const ColumnRun> runs;
    uint64_t count = 0;
  };
  std::map<Chosen, Times> chosen_;  // not yet in loads_
};

}  // namespace shardwright::plan::internal

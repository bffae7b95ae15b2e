// SPDX-License-Identifier: Apache-2.0
//
// ColumnBalancer: gives the items of a batch to the holders of each column, as save/owners.cc does
// item by item: to the holder with the fewest bytes so far, ties to the lowest rank. The holders of
// different columns are different ranks, so columns are taken one by one with all their items; what
// is chosen depends only on the differences between the loads, so it is worked out once per distinct
// vector of differences. SymbolicPlan.RandomJobsEqualTheExplicitPlan holds the two equal. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/hash_index.h"
#include "core/plan/symbolic/choices_internal.h"

namespace shardwright::plan::internal {

class ColumnBalancer {
 public:
  // loads: bytes that each rank writes so far.
  ColumnBalancer(std::vector<uint64_t>* loads, Choices* choices)
      : loads_(*loads), choices_(*choices) {}

  // A batch of items, all of the same weight, over columns with up to most_holders holders.
  void begin(std::span<const OpenItem> items, uint32_t most_holders);
  // holders: two or more, ascending.
  void assign(uint32_t column, std::span<const uint32_t> holders);

 private:
  struct Pattern {
    size_t begin = 0;  // into differences_ and counts_
    size_t holder_count = 0;
    size_t picks_begin = 0;
  };

  bool follows(const Pattern& pattern, std::span<const uint32_t> holders) const;
  size_t find_or_add(std::span<const uint32_t> holders);
  size_t add(uint64_t hash);
  void choose(std::span<uint32_t> picks);
  void apply(const Pattern& pattern, std::span<const uint32_t> holders);

  std::vector<uint64_t>& loads_;
  Choices& choices_;
  size_t item_count_ = 0;
  uint64_t weight_ = 0;
  std::vector<Pattern> patterns_;  // of this batch
  std::vector<int64_t> differences_;
  std::vector<uint32_t> counts_;  // items per holder
  std::vector<uint32_t> picks_;
  std::vector<int64_t> current_;  // differences of the column at hand
  std::vector<std::pair<int64_t, uint32_t>> heap_;
  HashIndex index_;
  size_t last_ = 0;
};

}  // namespace shardwright::plan::internal

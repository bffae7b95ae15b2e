// SPDX-License-Identifier: Apache-2.0
//
// What ranks keep after a merge, read as a host reads it.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "core/plan/rank_plans.h"
#include "core/plan/save/merge_plans.h"

namespace shardwright::plan::test {

// Items of the rank that it keeps, each with its number. Whether there is one number per box that
// the rank lists is in *fits.
inline std::map<uint32_t, uint32_t> kept_items(const RankView& rank,
                                               std::span<const uint32_t> numbers, bool* fits) {
  std::map<uint32_t, uint32_t> kept;
  size_t next = 0;
  for_each_item(rank, [&](uint32_t item) {
    // A rule that leaves the rank nothing lists no box.
    if (item >= rank.tensor_item(0) && box_is_empty(rank.box_of(item))) return;
    if (next < numbers.size() && numbers[next] != kNotKept) kept[item] = numbers[next];
    ++next;
  });
  *fits = next == numbers.size();
  return kept;
}

}  // namespace shardwright::plan::test

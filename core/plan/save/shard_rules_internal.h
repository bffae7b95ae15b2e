// SPDX-License-Identifier: Apache-2.0
//
// ShardRules: which tensors are cut by a rule that all their ranks share, and the grids and holder
// maps of these rules. Tensors of equal shape and cuts share a grid; those whose holders have equal
// coordinates share a holder map, also when they cut other dimensions. Where columns have different
// numbers of holders there is no rule for the tensor as a whole. Views the plans. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {

class ShardRules {
 public:
  // Grids and maps are appended to what merged has.
  ShardRules(const RankPlans& ranks, Merged* merged) : ranks_(ranks), merged_(*merged) {}

  // Sets grid, map and replicas when the members follow a rule, else nothing.
  void find(std::span<const Member> members, TensorSource* tensor);
  // The map of one column of all ranks of the members.
  uint32_t map_of(std::span<const Member> members);

 private:
  using Numbers = std::unordered_map<std::string, uint32_t>;  // distinct keys to running numbers

  bool collect(std::span<const Member> members);
  std::vector<GridAxis> sort_axes();
  uint32_t grid_number(std::span<const int64_t> shape, std::span<const GridAxis> axes);
  uint32_t map_number();

  const RankPlans& ranks_;
  Merged& merged_;
  Numbers grid_numbers_;
  Numbers map_numbers_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> replicas_;  // by grid and map
  std::vector<HolderGroup> groups_;                             // of the tensor at hand
  std::string key_;
};

}  // namespace shardwright::plan::internal

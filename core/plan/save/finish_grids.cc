// SPDX-License-Identifier: Apache-2.0
//
// Tensors that are cut by a rule as grids: their splits and rank maps are made once per rule.
#include <map>
#include <tuple>

#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {
namespace {

class GridFinish {
 public:
  explicit GridFinish(Merged* merged) : merged_(*merged), catalog_(merged->catalog) {}

  void run() {
    for (size_t t = 0; t < catalog_.tensors.size(); ++t) {
      TensorRecord& record = catalog_.tensors[t];
      if (!merged_.tensors[t].is_ruled() || record.chunk_count == 0) continue;
      const std::vector<uint32_t>& splits = splits_of(t);
      record.grid_begin = catalog_.grids.size();
      catalog_.grids.insert(catalog_.grids.end(), splits.begin(), splits.end());
      record.rank_map = rank_map_of(merged_.tensors[t]);
    }
  }

 private:
  // Numbers of the splits of the tensor's grid.
  const std::vector<uint32_t>& splits_of(size_t tensor) {
    const uint32_t number = merged_.tensors[tensor].grid;
    const auto [known, is_new] = splits_.try_emplace(number);
    if (!is_new) return known->second;
    const ShardGrid& grid = merged_.grids[number];
    for (int32_t d = 0; d < static_cast<int32_t>(grid.shape().size()); ++d) {
      if ((grid.split_mask() >> d & 1) == 0) continue;
      known->second.push_back(static_cast<uint32_t>(catalog_.splits.size()));
      catalog_.splits.push_back(DimSplit::of_sizes(grid.part_sizes(d)));
    }
    return known->second;
  }

  uint32_t rank_map_of(const TensorSource& tensor) {
    const auto [known, is_new] = rank_maps_.try_emplace({tensor.grid, tensor.map, tensor.replica},
                                                        catalog_.rank_maps.size());
    if (!is_new) return known->second;
    std::vector<uint32_t> ranks = merged_.grids[tensor.grid].chunk_columns();
    for (uint32_t& each : ranks) each = merged_.owner_of_column(tensor, each);
    catalog_.rank_maps.push_back(RankMap::of(ranks));
    return known->second;
  }

  Merged& merged_;
  Catalog& catalog_;
  std::map<uint32_t, std::vector<uint32_t>> splits_;                        // by grid
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> rank_maps_;  // by grid, map, replica
};

}  // namespace

void finish_grids(Merged* merged) {
  GridFinish(merged).run();
  // Also numbers splits and rank maps in the order in which tensors name them.
  find_grids(&merged->catalog);
}

}  // namespace shardwright::plan::internal

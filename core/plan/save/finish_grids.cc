// SPDX-License-Identifier: Apache-2.0
//
// Tensors that are cut by a rule as grids: their splits and rank maps are made once per rule.
#include <map>
#include <tuple>

#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {

void finish_grids(Merged* merged) {
  Catalog& catalog = merged->catalog;
  std::map<uint32_t, std::vector<uint32_t>> splits;                        // by grid
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> rank_maps;  // by grid, map, replica
  for (size_t t = 0; t < catalog.tensors.size(); ++t) {
    TensorRecord& record = catalog.tensors[t];
    const TensorSource& tensor = merged->tensors[t];
    if (!tensor.is_ruled() || record.chunk_count == 0) continue;
    const ShardGrid& grid = merged->grids[tensor.grid];
    const auto [split, is_new_grid] = splits.try_emplace(tensor.grid);
    if (is_new_grid) {
      for (const std::vector<int64_t>& sizes : grid.split_sizes()) {
        split->second.push_back(static_cast<uint32_t>(catalog.splits.size()));
        catalog.splits.push_back(DimSplit::of_sizes(sizes));
      }
    }
    record.grid_begin = catalog.grids.size();
    catalog.grids.insert(catalog.grids.end(), split->second.begin(), split->second.end());
    const auto [rank_map, is_new_map] =
        rank_maps.try_emplace({tensor.grid, tensor.map, tensor.replica}, catalog.rank_maps.size());
    if (is_new_map) {
      std::vector<uint32_t> ranks = grid.chunk_columns();
      for (uint32_t& each : ranks) each = merged->owner_of_column(tensor, each);
      catalog.rank_maps.push_back(RankMap::of(ranks));
    }
    record.rank_map = rank_map->second;
  }
  // Also numbers splits and rank maps in the order in which tensors name them.
  find_grids(&catalog);
}

}  // namespace shardwright::plan::internal

// SPDX-License-Identifier: Apache-2.0
//
// A counting sort of ranks by column.
#include "core/plan/save/holder_map_internal.h"

#include <algorithm>
#include <numeric>

namespace shardwright::plan::internal {

HolderMap::HolderMap(std::span<const uint32_t> description_of_rank,
                     std::span<const HolderGroup> groups) {
  std::vector<const HolderGroup*> group_of(size_t{groups.back().description} + 1, nullptr);
  for (const HolderGroup& group : groups) group_of[group.description] = &group;
  // Columns are numbered row-major over the axes.
  const auto column_in = [](const HolderGroup& group, int64_t rank) {
    int64_t column = 0;
    for (const ShardAxis& axis : group.axes)
      column = column * axis.extent + axis_coordinate(axis, rank);
    return static_cast<uint32_t>(column);
  };
  size_t columns = 1;
  for (const ShardAxis& axis : groups[0].axes) columns *= static_cast<size_t>(axis.extent);

  const size_t rank_count = description_of_rank.size();
  std::vector<uint32_t> column_of_rank(rank_count, kNoHolder);
  begins_.assign(columns + 1, 0);
  for (size_t r = 0; r < rank_count; ++r) {
    const uint32_t description = description_of_rank[r];
    if (description >= group_of.size() || group_of[description] == nullptr) continue;
    column_of_rank[r] = column_in(*group_of[description], static_cast<int64_t>(r));
    ++begins_[column_of_rank[r] + 1];
  }
  const auto [least, most] = std::minmax_element(begins_.begin() + 1, begins_.end());
  least_ = *least;
  most_ = *most;
  std::inclusive_scan(begins_.begin(), begins_.end(), begins_.begin());
  ranks_.resize(begins_.back());
  std::vector<uint32_t> next(begins_.begin(), begins_.end() - 1);
  for (uint32_t r = 0; r < rank_count; ++r) {
    if (column_of_rank[r] != kNoHolder) ranks_[next[column_of_rank[r]]++] = r;
  }
}

std::vector<uint32_t> HolderMap::positions(size_t rank_count) const {
  std::vector<uint32_t> positions(rank_count, kNoHolder);
  for (uint32_t column = 0; column < column_count(); ++column) {
    const std::span<const uint32_t> holders = of(column);
    for (uint32_t k = 0; k < holders.size(); ++k) positions[holders[k]] = k;
  }
  return positions;
}

}  // namespace shardwright::plan::internal

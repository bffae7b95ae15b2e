// SPDX-License-Identifier: Apache-2.0
//
// A counting sort of ranks by column.
#include "core/plan/save/holder_map_internal.h"

#include <algorithm>

namespace shardwright::plan::internal {

HolderMap::HolderMap(std::span<const uint32_t> description_of_rank, std::vector<HolderGroup> groups)
    : groups_(std::move(groups)) {
  const std::vector<ShardAxis>& axes = groups_[0].axes;
  column_strides_.resize(axes.size());
  uint32_t columns = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    column_strides_[i] = columns;
    columns *= static_cast<uint32_t>(axes[i].extent);
  }
  std::vector<const HolderGroup*> group_of(size_t{groups_.back().description} + 1, nullptr);
  for (const HolderGroup& group : groups_) group_of[group.description] = &group;

  const size_t rank_count = description_of_rank.size();
  std::vector<uint32_t> column_of_rank(rank_count, kNoHolder);
  begins_.assign(size_t{columns} + 1, 0);
  size_t held = 0;
  for (size_t r = 0; r < rank_count; ++r) {
    const uint32_t description = description_of_rank[r];
    if (description >= group_of.size() || group_of[description] == nullptr) continue;
    column_of_rank[r] = column_in(*group_of[description], static_cast<int64_t>(r));
    ++begins_[column_of_rank[r] + 1];
    ++held;
  }
  least_ = *std::min_element(begins_.begin() + 1, begins_.end());
  most_ = *std::max_element(begins_.begin() + 1, begins_.end());
  for (size_t c = 0; c < columns; ++c) begins_[c + 1] += begins_[c];
  ranks_.resize(held);
  // begins_ serves as the cursor of each column and is one column ahead afterwards.
  for (size_t r = 0; r < rank_count; ++r) {
    if (column_of_rank[r] != kNoHolder)
      ranks_[begins_[column_of_rank[r]]++] = static_cast<uint32_t>(r);
  }
  for (size_t c = columns; c > 0; --c) begins_[c] = begins_[c - 1];
  begins_[0] = 0;
}

uint32_t HolderMap::column_in(const HolderGroup& group, int64_t rank) const {
  uint32_t column = 0;
  for (size_t i = 0; i < group.axes.size(); ++i)
    column += static_cast<uint32_t>(axis_coordinate(group.axes[i], rank)) * column_strides_[i];
  return column;
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

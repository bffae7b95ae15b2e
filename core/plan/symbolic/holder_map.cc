// SPDX-License-Identifier: Apache-2.0
//
// A counting sort of ranks by column.
#include "core/plan/symbolic/holder_map_internal.h"

#include <algorithm>

namespace shardwright::plan::internal {

HolderMap::HolderMap(const RankDescriptions& ranks, std::vector<HolderGroup> groups)
    : groups_(std::move(groups)) {
  const std::vector<ShardAxis>& axes = groups_[0].axes;
  column_strides_.resize(axes.size());
  uint32_t columns = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    column_strides_[i] = columns;
    columns *= static_cast<uint32_t>(axes[i].extent);
  }
  std::vector<const HolderGroup*> group_of(ranks.descriptions.size(), nullptr);
  for (const HolderGroup& group : groups_) group_of[group.description] = &group;

  constexpr uint32_t kNone = 0xFFFFFFFF;
  const size_t rank_count = ranks.description_of_rank.size();
  std::vector<uint32_t> column_of_rank(rank_count);
  begins_.assign(size_t{columns} + 1, 0);
  size_t held = 0;
  for (size_t r = 0; r < rank_count; ++r) {
    const HolderGroup* group = group_of[ranks.description_of_rank[r]];
    column_of_rank[r] = group == nullptr ? kNone : column_in(*group, static_cast<int64_t>(r));
    if (group == nullptr) continue;
    ++begins_[column_of_rank[r] + 1];
    ++held;
  }
  least_ = *std::min_element(begins_.begin() + 1, begins_.end());
  most_ = *std::max_element(begins_.begin() + 1, begins_.end());
  has_single_ = std::find(begins_.begin() + 1, begins_.end(), 1U) != begins_.end();
  for (size_t c = 0; c < columns; ++c) begins_[c + 1] += begins_[c];
  ranks_.resize(held);
  // begins_ serves as the cursor of each column and is one column ahead afterwards.
  for (size_t r = 0; r < rank_count; ++r) {
    if (column_of_rank[r] != kNone) ranks_[begins_[column_of_rank[r]]++] = static_cast<uint32_t>(r);
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

uint32_t HolderMap::column_of(uint32_t description, int32_t rank) const {
  const auto group = std::ranges::lower_bound(groups_, description, {}, &HolderGroup::description);
  return column_in(*group, rank);
}

}  // namespace shardwright::plan::internal

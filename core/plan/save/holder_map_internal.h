// SPDX-License-Identifier: Apache-2.0
//
// HolderMap: which ranks hold each column of a grid. One map serves all tensors whose members have
// the same descriptions and coordinates, whatever dimensions they cut: 8 bytes per rank that holds
// something. Immutable after make, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/layout/shard_axis.h"

namespace shardwright::plan::internal {

// Ranks of one description, and the axes by which they find their column.
struct HolderGroup {
  uint32_t description = 0;
  std::vector<ShardAxis> axes;  // dims are not looked at
};

class HolderMap {
 public:
  // groups: ascending distinct descriptions, equal extents in all.
  HolderMap(std::span<const uint32_t> description_of_rank, std::span<const HolderGroup> groups);

  uint32_t column_count() const { return static_cast<uint32_t>(begins_.size() - 1); }
  // Ascending ranks.
  std::span<const uint32_t> of(uint32_t column) const {
    return {ranks_.data() + begins_[column], begins_[column + 1] - begins_[column]};
  }
  // Holders of the column that has fewest, and most.
  uint32_t least() const { return least_; }
  uint32_t most() const { return most_; }
  // Of each rank: how many holders of its column come before it; kNoHolder for others.
  std::vector<uint32_t> positions(size_t rank_count) const;
  static constexpr uint32_t kNoHolder = 0xFFFFFFFF;

 private:
  std::vector<uint32_t> begins_;  // one more than columns
  std::vector<uint32_t> ranks_;
  uint32_t least_ = 0;
  uint32_t most_ = 0;
};

}  // namespace shardwright::plan::internal

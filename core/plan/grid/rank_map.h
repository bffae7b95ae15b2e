// SPDX-License-Identifier: Apache-2.0
//
// RankMap: which rank each of a row of chunks belongs to, by number. Where the ranks are a sum of
// strides, one per digit of the chunk's number in a mixed radix, the map is its base and its
// levels, whatever the number of chunks: shards of a mesh, its transposes and its replicas are.
// Anything else is a column with one rank per chunk. The form is a function of the ranks alone, so
// equal maps are equal in every byte. Immutable value; thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"

namespace shardwright::plan {

// A digit of the number: counts from 0 below `extent`, each step adds `stride` to the rank.
struct RankLevel {
  uint64_t extent = 0;
  int64_t stride = 0;
  friend bool operator==(const RankLevel&, const RankLevel&) = default;
};
static_assert(sizeof(RankLevel) == 16);

// More levels than a mesh has axes that shard are written as a column.
inline constexpr size_t kMaxRankLevels = 8;

class RankMap {
 public:
  // Of no chunk.
  RankMap() = default;
  static RankMap of(std::span<const uint32_t> ranks);
  // What count(), base() and levels() said, the fastest digit first. DATA_LOSS for levels that are
  // not those of `of`, and for ranks that leave 0 to rank_count - 1.
  static Result<RankMap> from_levels(uint64_t count, uint32_t base, std::vector<RankLevel> levels,
                                     uint32_t rank_count);
  // What column() said. DATA_LOSS for a column that levels can say, and for ranks as above.
  static Result<RankMap> from_column(std::vector<uint32_t> column, uint32_t rank_count);

  uint64_t count() const { return count_; }
  // chunk < count().
  uint32_t operator[](uint64_t chunk) const;
  bool is_affine() const { return column_.empty(); }
  uint32_t base() const { return base_; }
  std::span<const RankLevel> levels() const { return levels_; }
  std::span<const uint32_t> column() const { return column_; }

  friend bool operator==(const RankMap&, const RankMap&) = default;

 private:
  uint64_t count_ = 0;
  uint32_t base_ = 0;
  std::vector<RankLevel> levels_;
  std::vector<uint32_t> column_;
};

}  // namespace shardwright::plan

// SPDX-License-Identifier: Apache-2.0
//
// Levels are found from the fastest on: the longest run of equal steps from the first rank is a
// block, all further blocks must repeat it, and the begins of the blocks are looked at likewise.
// The last block may be cut short. A level whose end goes on as it does itself would be one level
// with the next, so there is one way to write a row.
#include "core/plan/grid/rank_map.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "core/base/limits.h"

namespace shardwright::plan {
namespace {

int64_t step_between(uint32_t a, uint32_t b) {
  return static_cast<int64_t>(b) - static_cast<int64_t>(a);
}

// Ranks that lie `apart` from each other in the column.
struct Row {
  std::span<const uint32_t> ranks;
  uint64_t apart = 1;
  uint64_t size() const { return (ranks.size() + apart - 1) / apart; }
  uint32_t operator[](uint64_t i) const { return ranks[i * apart]; }
};

RankLevel first_level(const Row& row) {
  RankLevel level{2, step_between(row[0], row[1])};
  while (level.extent < row.size() &&
         step_between(row[level.extent - 1], row[level.extent]) == level.stride)
    ++level.extent;
  return level;
}

bool blocks_repeat(const Row& row, const RankLevel& level) {
  uint64_t in_block = 0;
  for (uint64_t i = 1; i < row.size(); ++i) {
    in_block = in_block + 1 == level.extent ? 0 : in_block + 1;
    if (in_block != 0 && step_between(row[i - 1], row[i]) != level.stride) return false;
  }
  return true;
}

// False when the row needs a column.
bool find_levels(std::span<const uint32_t> ranks, std::vector<RankLevel>* levels) {
  Row row{ranks, 1};
  while (row.size() > 1) {
    if (levels->size() == kMaxRankLevels) return false;
    const RankLevel level = first_level(row);
    if (!blocks_repeat(row, level)) return false;
    levels->push_back(level);
    row.apart *= level.extent;
  }
  return true;
}

Status no_map(uint64_t count, size_t levels) {
  return data_loss(fmt::format("{} levels are no map of {} chunks to ranks", levels, count));
}

struct RankRange {
  int64_t least = 0;
  int64_t most = 0;
};

// What the first `count` numbers of the levels, at least one, add to the base.
RankRange range_of(std::span<const RankLevel> levels, uint64_t count) {
  if (levels.empty()) return {};
  const std::span<const RankLevel> below = levels.first(levels.size() - 1);
  uint64_t block = 1;
  for (const RankLevel& level : below) block *= level.extent;
  const int64_t stride = levels.back().stride;
  const auto digit = static_cast<int64_t>((count - 1) / block);
  const RankRange cut = range_of(below, (count - 1) % block + 1);
  RankRange range{cut.least + digit * stride, cut.most + digit * stride};
  if (digit == 0) return range;
  const RankRange whole = range_of(below, block);
  const int64_t before = (digit - 1) * stride;
  range.least = std::min(range.least, whole.least + std::min<int64_t>(before, 0));
  range.most = std::max(range.most, whole.most + std::max<int64_t>(before, 0));
  return range;
}

// Whether `of` could have found these levels.
bool are_canonical(uint64_t count, std::span<const RankLevel> levels) {
  uint64_t block = 1;  // numbers that the levels so far make
  for (size_t i = 0; i < levels.size(); ++i) {
    const RankLevel& level = levels[i];
    if (block >= count) return false;
    const uint64_t digits = (count - 1) / block + 1;  // that are left for this level and all above
    const bool is_last = i + 1 == levels.size();
    if (level.extent < 2 || level.extent > digits || (is_last && level.extent != digits))
      return false;
    if (level.stride > kMaxWorldSize || level.stride < -kMaxWorldSize) return false;
    // A level that goes on where this one ends would be one with it.
    const int64_t next = static_cast<int64_t>(level.extent) * level.stride;
    if (!is_last && levels[i + 1].stride == next) return false;
    block *= level.extent;
  }
  return block >= count;
}

}  // namespace

RankMap RankMap::of(std::span<const uint32_t> ranks) {
  RankMap map;
  map.count_ = ranks.size();
  if (ranks.empty()) return map;
  map.base_ = ranks[0];
  if (find_levels(ranks, &map.levels_)) return map;
  map.base_ = 0;
  map.levels_.clear();
  map.column_.assign(ranks.begin(), ranks.end());
  return map;
}

Result<RankMap> RankMap::from_levels(uint64_t count, uint32_t base, std::vector<RankLevel> levels,
                                     uint32_t rank_count) {
  const bool fits = levels.size() <= kMaxRankLevels && count <= UINT32_MAX;
  if (!fits || (count == 0 && (base != 0 || !levels.empty())) ||
      (count > 0 && !are_canonical(count, levels)))
    return no_map(count, levels.size());
  if (count > 0) {
    const RankRange range = range_of(levels, count);
    if (base + range.least < 0 || base + range.most >= rank_count) {
      return data_loss(fmt::format("chunks belong to ranks {} to {} of {}", base + range.least,
                                   base + range.most, rank_count));
    }
  }
  RankMap map;
  map.count_ = count;
  map.base_ = base;
  map.levels_ = std::move(levels);
  return map;
}

Result<RankMap> RankMap::from_column(std::vector<uint32_t> column, uint32_t rank_count) {
  for (const uint32_t rank : column) {
    if (rank >= rank_count)
      return data_loss(fmt::format("a chunk belongs to rank {} of {}", rank, rank_count));
  }
  RankMap map = of(column);
  if (map.is_affine())
    return data_loss(fmt::format("the ranks of {} chunks need no column", column.size()));
  return map;
}

uint32_t RankMap::operator[](uint64_t chunk) const {
  if (!column_.empty()) return column_[chunk];
  int64_t rank = base_;
  for (const RankLevel& level : levels_) {
    rank += static_cast<int64_t>(chunk % level.extent) * level.stride;
    chunk /= level.extent;
  }
  return static_cast<uint32_t>(rank);
}

}  // namespace shardwright::plan

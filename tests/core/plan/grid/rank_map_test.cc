// SPDX-License-Identifier: Apache-2.0
#include "core/plan/grid/rank_map.h"

#include <gtest/gtest.h>

#include "tests/support/random_source.h"
#include "tests/support/run_length.h"

namespace shardwright::plan {
namespace {

using shardwright::test::RandomSource;
using shardwright::test::rounds;

void expect_says(const RankMap& map, const std::vector<uint32_t>& ranks) {
  ASSERT_EQ(map.count(), ranks.size());
  for (size_t c = 0; c < ranks.size(); ++c) ASSERT_EQ(map[c], ranks[c]) << c;
}

// What the levels say, without a look at whether they may.
std::vector<uint32_t> expand(uint64_t count, uint32_t base, const std::vector<RankLevel>& levels) {
  std::vector<uint32_t> ranks;
  for (uint64_t c = 0; c < count; ++c) {
    int64_t rank = base;
    uint64_t left = c;
    for (const RankLevel& level : levels) {
      rank += static_cast<int64_t>(left % level.extent) * level.stride;
      left /= level.extent;
    }
    ranks.push_back(static_cast<uint32_t>(rank));
  }
  return ranks;
}

TEST(RankMap, ShardsOfAMeshAreLevels) {
  // Rank = replica + 4 x column + 32 x row of an 8 x 8 grid of shards, replica 3.
  std::vector<uint32_t> ranks;
  for (uint32_t row = 0; row < 8; ++row) {
    for (uint32_t column = 0; column < 8; ++column) ranks.push_back(3 + 4 * column + 32 * row);
  }
  const RankMap map = RankMap::of(ranks);
  EXPECT_EQ(map.base(), 3U);
  EXPECT_EQ(map.levels().size(), 1U);  // the rows go on where the columns end
  expect_says(map, ranks);
  // The same shards with the axes of the mesh exchanged.
  for (uint32_t c = 0; c < 64; ++c) ranks[c] = 3 + 32 * (c % 8) + 4 * (c / 8);
  const RankMap exchanged = RankMap::of(ranks);
  EXPECT_EQ(exchanged.levels().size(), 2U);
  expect_says(exchanged, ranks);
  // Fewer shards than the mesh has room for.
  ranks.resize(13);
  EXPECT_EQ(RankMap::of(ranks).levels().size(), 2U);
  expect_says(RankMap::of(ranks), ranks);
}

TEST(RankMap, OneRankHasOneLevelWithoutStride) {
  const RankMap map = RankMap::of(std::vector<uint32_t>(1000, 7));
  ASSERT_EQ(map.levels().size(), 1U);
  EXPECT_EQ(map.levels()[0], (RankLevel{1000, 0}));
}

TEST(RankMap, WhatFollowsNoRuleIsAColumn) {
  const std::vector<uint32_t> ranks = {0, 1, 2, 0, 2, 1};
  const RankMap map = RankMap::of(ranks);
  EXPECT_FALSE(map.is_affine());
  expect_says(map, ranks);
  EXPECT_TRUE(RankMap::from_column(ranks, 3).ok());
  EXPECT_FALSE(RankMap::from_column(ranks, 2).ok()) << "rank 2 of 2";
  EXPECT_FALSE(RankMap::from_column({0, 1, 2}, 3).ok()) << "levels say that";
}

TEST(RankMap, RandomRowsComeBackInOneForm) {
  RandomSource random;
  for (int64_t round = 0; round < rounds(5000, 200000); ++round) {
    std::vector<RankLevel> levels(static_cast<size_t>(random.between(0, 4)));
    uint64_t count = 1;
    for (RankLevel& level : levels) {
      level = {static_cast<uint64_t>(random.between(1, 5)), random.between(-3, 6)};
      count *= level.extent;
    }
    count = static_cast<uint64_t>(random.between(1, static_cast<int64_t>(count)));
    const std::vector<uint32_t> ranks = expand(count, 500, levels);
    const RankMap map = RankMap::of(ranks);
    EXPECT_TRUE(map.is_affine());
    expect_says(map, ranks);
    const std::vector<RankLevel> own(map.levels().begin(), map.levels().end());
    const Result<RankMap> read = RankMap::from_levels(map.count(), map.base(), own, 1000);
    ASSERT_TRUE(read.ok()) << read.status().to_string();
    EXPECT_EQ(*read, map);
    const uint32_t most = *std::ranges::max_element(ranks);
    EXPECT_TRUE(RankMap::from_levels(map.count(), map.base(), own, most + 1).ok());
    EXPECT_FALSE(RankMap::from_levels(map.count(), map.base(), own, most).ok());
    // Levels as they were drawn are refused unless they are the same.
    const bool same = std::ranges::equal(map.levels(), levels);
    EXPECT_EQ(RankMap::from_levels(count, 500, levels, 1000).ok(), same);
  }
}

TEST(RankMap, LevelsThatLieAreDamage) {
  const auto refused = [](uint64_t count, uint32_t base, std::vector<RankLevel> levels) {
    return !RankMap::from_levels(count, base, std::move(levels), 100).ok();
  };
  EXPECT_TRUE(refused(0, 1, {}));
  EXPECT_TRUE(refused(2, 0, {})) << "no digit for the second chunk";
  EXPECT_TRUE(refused(1, 0, {{2, 1}})) << "a digit that nobody has";
  EXPECT_TRUE(refused(4, 0, {{2, 1}})) << "too few digits";
  EXPECT_TRUE(refused(4, 0, {{0, 1}, {4, 1}}));
  EXPECT_TRUE(refused(4, 0, {{1, 1}, {4, 1}}));
  EXPECT_TRUE(refused(4, 0, {{2, 1}, {2, 2}})) << "one level";
  EXPECT_TRUE(refused(4, 2, {{4, -1}})) << "below rank 0";
  EXPECT_TRUE(refused(4, 97, {{4, 1}})) << "above the last rank";
  EXPECT_TRUE(refused(4, 0, {{4, std::numeric_limits<int64_t>::max()}}));
  EXPECT_TRUE(refused(4, 0, {{4, std::numeric_limits<int64_t>::min()}}));
  EXPECT_TRUE(refused(std::numeric_limits<uint64_t>::max(), 0,
                      {{std::numeric_limits<uint64_t>::max(), 0}}));
  EXPECT_TRUE(refused(6, 0, {{uint64_t{1} << 63, 1}, {2, 1}}));
}

}  // namespace
}  // namespace shardwright::plan

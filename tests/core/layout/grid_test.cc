// SPDX-License-Identifier: Apache-2.0
//
// Shards of grids as Megatron Core describes them: placing, checks, flattened entries.
#include "core/layout/grid.h"

#include <functional>
#include <limits>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

GridShard placed(const Dims& local, int32_t prepended, const std::vector<RankOffset>& places) {
  const auto shard = grid_shard_at(local, prepended, places);
  EXPECT_TRUE(shard.ok()) << shard.status().to_string();
  return shard.ok() ? *shard : GridShard();
}

TEST(GridShard, IsPlacedByRankOffsets) {
  const GridShard shard = placed({1, 3, 7, 9}, 0, {{0, 0, 10}, {2, 3, 6}});
  EXPECT_EQ(shard.global_shape, (Dims{10, 3, 42, 9}));
  EXPECT_EQ(shard.offsets, (Dims{0, 0, 21, 0}));
  EXPECT_EQ(shard.fragments, (Dims{10, 1, 6, 1}));
  EXPECT_EQ(grid_index(shard), (Dims{0, 0, 3, 0}));
}

TEST(GridShard, HasExtentOneOnPrependedAxes) {
  const GridShard shard = placed({3, 4}, 1, {{0, 2, 5}, {2, 1, 3}});
  EXPECT_EQ(shard.global_shape, (Dims{5, 3, 12}));
  EXPECT_EQ(shard.offsets, (Dims{2, 0, 4}));
  EXPECT_EQ(shard.fragments, (Dims{5, 1, 3}));
  EXPECT_EQ(grid_index(shard), (Dims{2, 0, 1}));
  EXPECT_EQ(grid_box(shard), (Box{{2, 0, 4}, {1, 3, 4}}));
  EXPECT_EQ(*grid_pieces(shard), (std::vector<Piece>{{{{2, 0, 4}, {1, 3, 4}}, 0}}));
}

TEST(GridShard, LastPlaceOfAnAxisCounts) {
  const GridShard shard = placed({3, 4}, 0, {{0, 0, 2}, {0, 1, 3}});
  EXPECT_EQ(shard.global_shape, (Dims{9, 4}));
  EXPECT_EQ(shard.offsets, (Dims{3, 0}));
}

TEST(GridShard, PlacesMustBe) {
  const std::vector<RankOffset> cases = {{-1, 0, 2}, {2, 0, 2}, {0, -1, 2},
                                         {0, 0, 0},  {0, 2, 2}, {0, 0, kMax}};
  for (const RankOffset& place : cases) {
    EXPECT_EQ(grid_shard_at({3, 4}, 0, {{place}}).status().code(), StatusCode::kInvalidArgument)
        << place.axis << " " << place.index << " " << place.count;
  }
  EXPECT_EQ(grid_shard_at({3, -4}, 0, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(grid_shard_at({3}, -1, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(grid_shard_at({3}, 64, {}).status().code(), StatusCode::kInvalidArgument);
}

struct RefusedShard {
  std::string_view what;
  std::function<void(GridShard&)> spoil;
  StatusCode code = StatusCode::kInvalidArgument;
};

TEST(GridShard, IsCheckedWhole) {
  const std::vector<RefusedShard> cases = {
      {"prepended axes too many", [](GridShard& s) { s.prepended = 2; }},
      {"prepended axes negative", [](GridShard& s) { s.prepended = -1; }},
      {"offsets too few", [](GridShard& s) { s.offsets = {2, 0}; }},
      {"fragments too few", [](GridShard& s) { s.fragments = {5, 1}; }},
      {"fragment of 0", [](GridShard& s) { s.fragments = {5, 1, 0}; }},
      {"fragments do not fit", [](GridShard& s) { s.fragments = {5, 1, 4}; }},
      {"prepended fragments do not fit", [](GridShard& s) { s.fragments = {4, 1, 3}; }},
      {"offset between parts", [](GridShard& s) { s.offsets = {2, 0, 3}; }},
      {"negative offset", [](GridShard& s) { s.offsets = {-1, 0, 4}; }},
      {"negative extent", [](GridShard& s) { s.local_shape = {-3, 4}; }},
      {"negative global extent", [](GridShard& s) { s.global_shape = {5, 3, -12}; }},
      {"global shape overflows", [](GridShard& s) { s.global_shape = {kMax, 3, 12}; }},
      {"behind the end", [](GridShard& s) { s.offsets = {5, 0, 4}; }, StatusCode::kOutOfRange},
      {"negative flat range", [](GridShard& s) { s.flat_range = {-1, 2}; }},
      {"flat range leaves", [](GridShard& s) { s.flat_range = {3, 10}; }, StatusCode::kOutOfRange},
  };
  for (const RefusedShard& each : cases) {
    GridShard shard = placed({3, 4}, 1, {{0, 2, 5}, {2, 1, 3}});
    each.spoil(shard);
    EXPECT_EQ(check_grid_shard(shard).code(), each.code) << each.what;
    EXPECT_EQ(grid_pieces(shard).status().code(), each.code) << each.what;
  }
}

TEST(GridShard, OfAnIrregularGridLiesAnywhere) {
  GridShard shard = placed({3, 4}, 1, {{0, 2, 5}, {2, 1, 3}});
  shard.fragments.reset();
  shard.offsets = {2, 0, 7};
  EXPECT_EQ(grid_pieces(shard)->front().box, (Box{{2, 0, 7}, {1, 3, 4}}));
}

TEST(GridShard, MayDifferInShapeWhenItSaysSo) {
  GridShard shard = placed({3, 4}, 0, {{0, 1, 4}});
  shard.global_shape = {11, 4};
  EXPECT_EQ(check_grid_shard(shard).code(), StatusCode::kInvalidArgument);
  shard.shape_may_differ = true;
  EXPECT_TRUE(check_grid_shard(shard).ok());
}

TEST(GridShard, MayBeEmpty) {
  const GridShard shard = placed({0, 4}, 0, {{0, 1, 2}});
  EXPECT_EQ(grid_index(shard), (Dims{0, 0}));
  EXPECT_TRUE(box_is_empty(grid_pieces(shard)->front().box));
}

TEST(MainReplica, IsAllZeros) {
  EXPECT_TRUE(is_main_replica({}));
  EXPECT_TRUE(is_main_replica(Dims{0}));
  EXPECT_TRUE(is_main_replica(Dims{0, 0}));
  EXPECT_FALSE(is_main_replica(Dims{1}));
  EXPECT_FALSE(is_main_replica(Dims{0, 1}));
}

struct FlatCase {
  Dims local;
  int32_t prepended = 0;
  RankOffset place;
  IndexRange range;
  Dims shape;
  Box box;
};

TEST(FlatEntry, HasAnAxisPerPartNumber) {
  const std::vector<FlatCase> cases = {
      {{4, 3}, 0, {1, 0, 2}, {0, 12}, {1, 2, 12}, {{0, 0, 0}, {1, 1, 12}}},
      {{4, 3}, 0, {1, 1, 2}, {0, 12}, {1, 2, 12}, {{0, 1, 0}, {1, 1, 12}}},
      {{4, 6}, 0, {0, 0, 1}, {0, 10}, {1, 1, 24}, {{0, 0, 0}, {1, 1, 10}}},
      {{4, 6}, 0, {0, 0, 1}, {10, 14}, {1, 1, 24}, {{0, 0, 10}, {1, 1, 14}}},
      {{6}, 0, {0, 0, 1}, {3, 3}, {1, 6}, {{0, 3}, {1, 3}}},
      {{2, 3}, 1, {0, 1, 2}, {0, 6}, {2, 1, 1, 6}, {{1, 0, 0, 0}, {1, 1, 1, 6}}},
  };
  for (const FlatCase& each : cases) {
    GridShard shard = placed(each.local, each.prepended, {each.place});
    shard.flat_range = each.range;
    const auto entry = flat_entry_of(shard);
    ASSERT_TRUE(entry.ok()) << entry.status().to_string();
    EXPECT_EQ(entry->shape, each.shape);
    EXPECT_EQ(entry->box, each.box);
    EXPECT_EQ(*flat_entry_pieces(shard.global_shape, entry->shape, entry->box),
              *grid_pieces(shard));
  }
}

TEST(FlatEntry, NeedsFragmentsAndARange) {
  GridShard shard = placed({4, 3}, 0, {{1, 0, 2}});
  EXPECT_EQ(flat_entry_of(shard).status().code(), StatusCode::kInvalidArgument);
  shard.flat_range = {0, 12};
  shard.fragments.reset();
  EXPECT_EQ(flat_entry_of(shard).status().code(), StatusCode::kInvalidArgument);
}

TEST(FlatEntry, ChunksMustFitTheOriginalShape) {
  const Box chunk = {{0, 1, 0}, {1, 1, 12}};
  EXPECT_TRUE(flat_entry_pieces(Dims{4, 6}, Dims{1, 2, 12}, chunk).ok());
  const auto code = [](const Dims& original, const Dims& entry, const Box& box) {
    return flat_entry_pieces(original, entry, box).status().code();
  };
  EXPECT_EQ(code({4, 6, 1}, {1, 2, 12}, chunk), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({4, 7}, {1, 2, 12}, chunk), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({4, 6}, {1, 2, 11}, {{0, 1, 0}, {1, 1, 11}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({4, 6}, {1, 2, 12}, {{0, 0, 0}, {1, 2, 12}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({4, 6}, {1, 2, 12}, {{0, 2, 0}, {1, 1, 12}}), StatusCode::kOutOfRange);
  EXPECT_EQ(code({4, -6}, {1, 2, 12}, chunk), StatusCode::kInvalidArgument);
}

TEST(OverlappingParts, AreExact) {
  EXPECT_EQ(overlapping_parts(7, 25, 24), (IndexRange{6, 1}));
  EXPECT_EQ(overlapping_parts(4, 2, 1), (IndexRange{2, 2}));
  EXPECT_EQ(overlapping_parts(2, 4, 1), (IndexRange{0, 1}));
  EXPECT_EQ(overlapping_parts(3, 2, 0), (IndexRange{0, 2}));
  EXPECT_EQ(overlapping_parts(kMax, kMax, kMax - 1), (IndexRange{kMax - 1, 1}));
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
//
// Parts, cells and replicas of a layout and a shape. random_layouts_test.cc compares with the
// oracle.
#include "core/layout/split.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

constexpr Placement kReplicate = {PlacementKind::kReplicate, 0, 0};

Placement shard(int32_t dim) {
  return {PlacementKind::kShard, dim, 0};
}

Layout::Ptr layout_of(Mesh mesh, const std::vector<Placement>& placements) {
  const auto layout = Layout::create(std::move(mesh), placements);
  EXPECT_TRUE(layout.ok()) << layout.status().to_string();
  return *layout;
}

TEST(SplitView, ListsTheCutsOfADimensionOutermostFirst) {
  const auto layout =
      layout_of({{2, 3, 4, 5}, {}, {}},
                {shard(-1), kReplicate, {PlacementKind::kStridedShard, 1, 4}, shard(0)});
  const Dims shape = {8, 8};
  const SplitView split = *SplitView::create(*layout, shape);
  EXPECT_EQ(split.cuts(0), (std::vector<AxisCut>{{3, 5, 1}}));
  EXPECT_EQ(split.cuts(1), (std::vector<AxisCut>{{0, 2, 1}, {2, 4, 4}}));
  EXPECT_TRUE(split.cuts(kFlatDim).empty());
  EXPECT_FALSE(split.is_grid());
  EXPECT_EQ(split.part_count(1), 8);
  EXPECT_EQ(split.cell_count(), 40);
  EXPECT_EQ(split.replica_count(), 3);
}

TEST(SplitView, NumbersPartsByTheOutermostAxis) {
  const auto layout = *Layout::create_mapped({{2, 3}, {}, {}}, {{0, 1}});  // last axis outermost
  const Dims shape = {12};
  const SplitView split = *SplitView::create(*layout, shape);
  // Positions (0,0) (0,1) (0,2) (1,0) (1,1) (1,2).
  std::vector<int64_t> parts;
  parts.reserve(6);
  for (int64_t position = 0; position < 6; ++position) parts.push_back(split.part_of(0, position));
  EXPECT_EQ(parts, (std::vector<int64_t>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(split.range(0, 3), (IndexRange{6, 2}));
}

TEST(SplitView, EmptyPartsBeginAtTheEnd) {
  const auto layout = layout_of({{2, 3}, {}, {}}, {shard(0), shard(0)});
  const Dims shape = {4};  // 2 + 2, each 1 + 1 + 0
  const SplitView split = *SplitView::create(*layout, shape);
  EXPECT_EQ(split.range(0, 2), (IndexRange{4, 0}));
  EXPECT_EQ(split.range(0, 3), (IndexRange{2, 1}));
  EXPECT_EQ(split.filled_part_count(0), 4);
  EXPECT_EQ(split.filled_cell_count(), 4);
}

TEST(SplitView, TellsCellsAndReplicasApart) {
  const auto layout = layout_of({{2, 2, 2}, {}, {}}, {shard(0), kReplicate, shard(1)});
  const Dims shape = {4, 4};
  const SplitView split = *SplitView::create(*layout, shape);
  EXPECT_EQ(split.cell_of(5), 3);  // (1, 0, 1)
  EXPECT_EQ(split.position_of(3, 0), 5);
  EXPECT_EQ(split.position_of(3, 1), 7);
  EXPECT_EQ(split.cell_of(7), 3);
}

TEST(SplitView, WithoutCutsIsOneCell) {
  const auto layout = layout_of({{3}, {}, {}}, {kReplicate});
  const Dims scalar;
  const SplitView split = *SplitView::create(*layout, scalar);
  EXPECT_EQ(split.cell_count(), 1);
  EXPECT_EQ(split.filled_cell_count(), 1);
  EXPECT_EQ(split.replica_count(), 3);
  EXPECT_EQ(split.position_of(0, 2), 2);
}

TEST(SplitView, HugeWorldsCostNothing) {
  const auto layout = layout_of({{256, 64, 64}, {}, {}}, {shard(0), shard(0), kReplicate});
  const Dims shape = {int64_t{1} << 40, 7};
  const SplitView split = *SplitView::create(*layout, shape);
  EXPECT_EQ(split.cell_count(), 16384);
  EXPECT_EQ(split.filled_cell_count(), 16384);
  const int64_t position = split.position_of(16383, 63);
  EXPECT_EQ(position, layout->rank_count() - 1);
  std::vector<Piece> pieces;
  ASSERT_TRUE(split.append_pieces(position, &pieces).ok());
  EXPECT_EQ(pieces, (std::vector<Piece>{{{{(int64_t{1} << 40) - (1 << 26), 0}, {1 << 26, 7}}, 0}}));
}

TEST(SplitView, AppendsToWhatIsThere) {
  const auto layout = layout_of({{2}, {}, {}}, {{PlacementKind::kFlat, 0, 0}});
  const Dims shape = {3};
  std::vector<Piece> pieces;
  const SplitView split = *SplitView::create(*layout, shape);
  ASSERT_TRUE(split.append_pieces(0, &pieces).ok());
  ASSERT_TRUE(split.append_pieces(1, &pieces).ok());
  EXPECT_EQ(pieces, (std::vector<Piece>{{{{0}, {2}}, 0}, {{{2}, {1}}, 0}}));
}

}  // namespace
}  // namespace shardwright

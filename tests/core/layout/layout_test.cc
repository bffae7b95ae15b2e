// SPDX-License-Identifier: Apache-2.0
//
// Layout: placements and tensor maps, local shapes, and what is refused. random_layouts_test.cc
// compares with the oracle.
#include "core/layout/layout.h"

#include <limits>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/limits.h"

namespace shardwright {
namespace {

Placement shard(int32_t dim) {
  return {PlacementKind::kShard, dim, 0};
}
Placement strided_shard(int32_t dim, int32_t factor) {
  return {PlacementKind::kStridedShard, dim, factor};
}
Placement flat() {
  return {PlacementKind::kFlat, 0, 0};
}
Placement replicate() {
  return {PlacementKind::kReplicate, 0, 0};
}

Layout::Ptr make_layout(Mesh mesh, const std::vector<Placement>& placements) {
  const auto layout = Layout::create(std::move(mesh), placements);
  EXPECT_TRUE(layout.ok()) << layout.status().to_string();
  return layout.ok() ? *layout : nullptr;
}

Layout::Ptr make_mapped(Mesh mesh, const TensorMap& map) {
  const auto layout = Layout::create_mapped(std::move(mesh), map);
  EXPECT_TRUE(layout.ok()) << layout.status().to_string();
  return layout.ok() ? *layout : nullptr;
}

Box box_of(const Layout& layout, const Dims& shape, int32_t rank) {
  const Result<std::vector<Piece>> pieces = layout.pieces(shape, rank);
  EXPECT_TRUE(pieces.ok()) << pieces.status().to_string();
  EXPECT_EQ(pieces->size(), 1U);
  EXPECT_EQ(pieces->front().local_offset_elements, 0);
  return pieces->front().box;
}

TEST(Layout, ShardsInChunksOfTheRoundedUpShare) {
  const auto layout = make_layout({{4}, {}, {}}, {shard(0)});
  EXPECT_EQ(box_of(*layout, {10, 3}, 0), (Box{{0, 0}, {3, 3}}));
  EXPECT_EQ(box_of(*layout, {10, 3}, 3), (Box{{9, 0}, {1, 3}}));
}

TEST(Layout, LastShardsMayBeShortOrEmptyAndEmptyOnesLieAtTheEnd) {
  const auto layout = make_layout({{4}, {}, {}}, {shard(0)});
  EXPECT_EQ(box_of(*layout, {5}, 2), (Box{{4}, {1}}));
  EXPECT_EQ(box_of(*layout, {5}, 3), (Box{{5}, {0}}));
  EXPECT_EQ(box_of(*layout, {0}, 1), (Box{{0}, {0}}));
}

TEST(Layout, AxesThatShardOneDimensionNestFromTheFirst) {
  const auto layout = make_layout({{2, 3}, {"dp", "tp"}, {}}, {shard(0), shard(0)});
  // 10 = 5 + 5; each 5 = 2 + 2 + 1.
  EXPECT_EQ(box_of(*layout, {10}, 0), (Box{{0}, {2}}));
  EXPECT_EQ(box_of(*layout, {10}, 2), (Box{{4}, {1}}));
  EXPECT_EQ(box_of(*layout, {10}, 3), (Box{{5}, {2}}));
  EXPECT_EQ(box_of(*layout, {10}, 5), (Box{{9}, {1}}));
}

TEST(Layout, ReplicatesAndShardsDifferentDimensions) {
  const auto layout = make_layout({{2, 2, 2}, {}, {}}, {replicate(), shard(1), shard(-3)});
  EXPECT_EQ(box_of(*layout, {4, 6, 1}, 0), (Box{{0, 0, 0}, {2, 3, 1}}));
  EXPECT_EQ(box_of(*layout, {4, 6, 1}, 3), (Box{{2, 3, 0}, {2, 3, 1}}));
  EXPECT_EQ(box_of(*layout, {4, 6, 1}, 7), (Box{{2, 3, 0}, {2, 3, 1}}));
}

TEST(Layout, RanksMayStandInAnyOrder) {
  const auto layout = make_layout({{3}, {}, {7, 2, 9}}, {shard(0)});
  EXPECT_EQ(box_of(*layout, {6}, 7), (Box{{0}, {2}}));
  EXPECT_EQ(box_of(*layout, {6}, 2), (Box{{2}, {2}}));
  EXPECT_EQ(box_of(*layout, {6}, 9), (Box{{4}, {2}}));
  EXPECT_TRUE(layout->contains(9));
}

TEST(Layout, RankOutsideTheMeshHoldsNothing) {
  const auto layout = make_layout({{2}, {}, {4, 5}}, {shard(0)});
  for (const int32_t rank : {-1, 0, 3, 6}) {
    EXPECT_FALSE(layout->contains(rank));
    EXPECT_TRUE(layout->pieces(Dims{8}, rank)->empty());
  }
  const auto dense = make_layout({{2}, {}, {}}, {shard(0)});
  EXPECT_FALSE(dense->contains(2));
  EXPECT_FALSE(dense->contains(-1));
  EXPECT_EQ(*dense->local_shape(Dims{8, 2}, 2), (Dims{0}));
}

TEST(Layout, MeshOfNoAxesIsOneRankThatHoldsAll) {
  const auto layout = make_layout({}, {});
  EXPECT_EQ(box_of(*layout, {3, 4}, 0), whole_box(Dims{3, 4}));
  EXPECT_FALSE(layout->contains(1));
}

TEST(Layout, ScalarsReplicate) {
  const auto layout = make_layout({{2}, {}, {}}, {replicate()});
  EXPECT_EQ(box_of(*layout, {}, 1), whole_box(Dims{}));
}

TEST(Layout, HugeExtentsDoNotOverflow) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const auto layout = make_layout({{3}, {}, {}}, {shard(0)});
  const Box last = box_of(*layout, {kMax}, 2);
  EXPECT_EQ(last.offsets[0] + last.sizes[0], kMax);
}

TEST(Layout, PlacementMustNameADimensionOfTheShape) {
  const auto layout = make_layout({{2}, {}, {}}, {shard(1)});
  EXPECT_EQ(layout->pieces(Dims{4}, 0).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(layout->pieces(Dims{}, 0).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(layout->pieces(Dims{4}, 99).status().code(), StatusCode::kInvalidArgument);
  const auto negative = make_layout({{2}, {}, {}}, {shard(-2)});
  EXPECT_EQ(negative->pieces(Dims{4}, 0).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(negative->pieces(Dims{4, 4}, 0).ok());
  EXPECT_EQ(negative->pieces(Dims{-4, 4}, 0).status().code(), StatusCode::kInvalidArgument);
}

// Boxes of the ranks 0, 1, 2, ... of a tensor of one dimension.
std::vector<Box> boxes_of(const Layout& layout, int64_t extent) {
  std::vector<Box> boxes;
  boxes.reserve(static_cast<size_t>(layout.rank_count()));
  for (int32_t rank = 0; rank < layout.rank_count(); ++rank)
    boxes.push_back(box_of(layout, {extent}, rank));
  return boxes;
}

TEST(Layout, EmptyShardsBeginAtTheEndOfTheTensorAlsoWhenAxesNest) {
  const auto layout = make_layout({{2, 2}, {}, {}}, {shard(0), shard(0)});
  EXPECT_EQ(boxes_of(*layout, 5),
            (std::vector<Box>{{{0}, {2}}, {{2}, {1}}, {{3}, {1}}, {{4}, {1}}}));
  EXPECT_EQ(boxes_of(*layout, 2),
            (std::vector<Box>{{{0}, {1}}, {{2}, {0}}, {{1}, {1}}, {{2}, {0}}}));
}

TEST(StridedLayout, OfShardedDataAndTensorParallelismIsOneBoxPerRank) {
  const auto layout = make_layout({{2, 2}, {"dp", "tp"}, {}}, {strided_shard(0, 2), shard(0)});
  EXPECT_EQ(boxes_of(*layout, 8),
            (std::vector<Box>{{{0}, {2}}, {{4}, {2}}, {{2}, {2}}, {{6}, {2}}}));
  EXPECT_EQ(boxes_of(*layout, 10),
            (std::vector<Box>{{{0}, {3}}, {{5}, {3}}, {{3}, {2}}, {{8}, {2}}}));
}

TEST(StridedLayout, GivesEveryRunOfADimension) {
  const auto layout = make_layout({{2}, {}, {}}, {strided_shard(0, 2)});
  EXPECT_EQ(*layout->pieces(Dims{8, 3}, 1),
            (std::vector<Piece>{{{{2, 0}, {2, 3}}, 0}, {{{6, 0}, {2, 3}}, 6}}));
  EXPECT_EQ(*layout->local_shape(Dims{8, 3}, 1), (Dims{4, 3}));
}

TEST(StridedLayout, CombinesTheRunsOfItsDimensions) {
  const auto layout = make_layout({{2, 2}, {}, {}}, {strided_shard(0, 2), strided_shard(1, 2)});
  EXPECT_EQ(*layout->pieces(Dims{4, 8}, 3), (std::vector<Piece>{{{{1, 2}, {1, 2}}, 0},
                                                                {{{1, 6}, {1, 2}}, 2},
                                                                {{{3, 2}, {1, 2}}, 4},
                                                                {{{3, 6}, {1, 2}}, 6}}));
}

TEST(StridedLayout, ThatHoldsNothingGivesOneEmptyBox) {
  const auto layout = make_layout({{2}, {}, {}}, {strided_shard(0, 4)});
  EXPECT_EQ(*layout->pieces(Dims{4, 3}, 1), (std::vector<Piece>{{{{4, 0}, {0, 3}}, 0}}));
}

TEST(StridedLayout, HasALimitOfBoxes) {
  const auto layout =
      make_layout({{2, 2}, {}, {}}, {strided_shard(0, 1 << 11), strided_shard(1, 1 << 11)});
  const Status status = layout->pieces(Dims{1 << 14, 1 << 14}, 0).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.detail("resource"), "pieces");
  EXPECT_EQ(layout->pieces(Dims{1 << 14, 1}, 0)->size(), size_t{1} << 11);
}

TEST(FlatLayout, CutsTheElementsThatTheOtherAxesLeave) {
  const auto layout = make_layout({{2, 2}, {"fsdp", "tp"}, {}}, {flat(), shard(0)});
  // Of [6, 3] a tp rank has 3 rows = 9 elements, cut into 5 + 4.
  EXPECT_EQ(*layout->pieces(Dims{6, 3}, 1),
            (std::vector<Piece>{{{{3, 0}, {1, 3}}, 0}, {{{4, 0}, {1, 2}}, 3}}));
  EXPECT_EQ(*layout->pieces(Dims{6, 3}, 3),
            (std::vector<Piece>{{{{4, 2}, {1, 1}}, 0}, {{{5, 0}, {1, 3}}, 1}}));
  EXPECT_EQ(*layout->local_shape(Dims{6, 3}, 1), (Dims{5}));
  EXPECT_EQ(*layout->local_shape(Dims{6, 3}, 3), (Dims{4}));
  EXPECT_EQ(*layout->local_shape(Dims{6, 3}, 9), (Dims{0}));
}

TEST(FlatLayout, OfAScalarGivesItToTheFirstPart) {
  const auto layout = make_layout({{2}, {}, {}}, {flat()});
  EXPECT_EQ(layout->pieces(Dims{}, 0)->size(), 1U);
  EXPECT_TRUE(layout->pieces(Dims{}, 1)->empty());
}

TEST(FlatLayout, TakesNoStride) {
  const auto layout = make_layout({{2, 2}, {}, {}}, {flat(), strided_shard(0, 2)});
  EXPECT_EQ(layout->pieces(Dims{8}, 0).status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(Layout::create_cut({{2}, {}, {}}, {{0, kFlatDim, 2}}, kAnyTensorRank).status().code(),
            StatusCode::kInvalidArgument);
}

struct MappedCase {
  TensorMap map;
  std::vector<Box> boxes;  // of the ranks 0, 1, 2, 4, 5
};

TEST(MappedLayout, HoldsTheAreasOfItsVectors) {
  const std::vector<Box> quarters = {
      {{0, 0}, {4, 4}}, {{0, 4}, {4, 4}}, {{0, 0}, {4, 4}}, {{4, 0}, {4, 4}}, {{4, 4}, {4, 4}}};
  const auto rows = [](std::initializer_list<int64_t> first) {
    std::vector<Box> boxes;
    for (const int64_t row : first) boxes.push_back({{row, 0}, {2, 8}});
    return boxes;
  };
  const Box left = {{0, 0}, {8, 4}};
  const std::vector<MappedCase> cases = {
      {{{2}, {0}}, quarters},
      {{{2, 0}, {-1}}, rows({0, 2, 0, 4, 6})},
      {{{0, 2}, {-1}}, rows({0, 4, 0, 2, 6})},
      {{{-1}, {1}}, {left, left, {{0, 4}, {8, 4}}, left, left}},
      {{{2, -1}, {0}}, quarters},
  };
  for (const MappedCase& each : cases) {
    const auto layout = make_mapped({{2, 2, 2}, {"dp", "cp", "tp"}, {}}, each.map);
    std::vector<Box> boxes;
    for (const int32_t rank : {0, 1, 2, 4, 5}) boxes.push_back(box_of(*layout, {8, 8}, rank));
    EXPECT_EQ(boxes, each.boxes);
  }
}

TEST(MappedLayout, SplitsUnevenly) {
  const auto layout = make_mapped({{2}, {}, {}}, {{-1}, {0}});
  EXPECT_EQ(box_of(*layout, {64, 65}, 0), (Box{{0, 0}, {64, 33}}));
  EXPECT_EQ(box_of(*layout, {64, 65}, 1), (Box{{0, 33}, {64, 32}}));
}

TEST(MappedLayout, OfAScalarHoldsIt) {
  EXPECT_EQ(box_of(*make_mapped({{2}, {}, {}}, {}), {}, 1), whole_box(Dims{}));
}

TEST(MappedLayout, KnowsTheRankOfItsTensors) {
  const auto layout = make_mapped({{2, 2, 2}, {}, {}}, {{2}});
  for (const Dims& shape : {Dims{8, 8}, Dims{}}) {
    EXPECT_EQ(layout->pieces(shape, 0).status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(layout->local_shape(shape, 0).status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(layout->tensor_rank(), 1);
}

struct RefusedMap {
  std::string_view what;
  TensorMap map;
  std::string_view names;
};

TEST(MappedLayout, RefusesAxesThatAreNotThereOrUsedTwice) {
  const std::vector<RefusedMap> cases = {
      {"an axis beyond the mesh", {{3}}, "names mesh axis 3 from the right"},
      {"below -1", {{-2}}, "names mesh axis -2 from the right"},
      {"twice in a dimension", {{1, 1}}, "axis 1 'cp' is used twice"},
      {"in two dimensions", {{0}, {0}}, "axis 2 'tp' is used twice"},
  };
  for (const RefusedMap& each : cases) {
    const Status status =
        Layout::create_mapped({{2, 2, 2}, {"dp", "cp", "tp"}, {}}, each.map).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << each.what;
    EXPECT_NE(status.message().find(each.names), std::string_view::npos) << status.to_string();
  }
}

TEST(MappedLayout, NamesAnInterleavedAxis) {
  const Status status =
      Layout::create_mapped({{2, 2}, {"dp", "interleaved_parallel"}, {}}, {{1}}).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_NE(status.message().find("axis 1 'interleaved_parallel'"), std::string_view::npos);
  EXPECT_TRUE(Layout::create({{2}, {"interleaved_parallel"}, {}}, {replicate()}).ok());
}

struct RefusedCase {
  std::string_view what;
  Mesh mesh;
  std::vector<Placement> placements;
  StatusCode code = StatusCode::kInvalidArgument;
};

TEST(Layout, RefusesWhatItCannotDescribe) {
  const std::vector<RefusedCase> cases = {
      {"too few placements", {{2, 2}, {}, {}}, {shard(0)}},
      {"too many placements", {{2}, {}, {}}, {shard(0), shard(0)}},
      {"too few ranks", {{2}, {}, {0}}, {shard(0)}},
      {"duplicate rank", {{3}, {}, {0, 4, 0}}, {shard(0)}},
      {"negative rank", {{2}, {}, {0, -1}}, {shard(0)}},
      {"negative extent", {{-2}, {}, {}}, {shard(0)}},
      {"zero extent", {{0}, {}, {}}, {shard(0)}},
      {"too many ranks", {{kMaxWorldSize, 2}, {}, {}}, {shard(0), shard(0)}},
      {"too few axis names", {{2, 2}, {"dp"}, {}}, {shard(0), shard(0)}},
      {"duplicate axis name", {{2, 2}, {"dp", "dp"}, {}}, {shard(0), shard(0)}},
      {"axis name that is not UTF-8", {{2}, {"\xFF"}, {}}, {shard(0)}},
      {"too many axes", {Dims(65, 1), {}, {}}, std::vector<Placement>(65)},
      {"unknown placement", {{2}, {}, {}}, {{static_cast<PlacementKind>(9), 0, 0}}},
      {"stride factor of 0", {{2}, {}, {}}, {strided_shard(0, 0)}},
      {"negative stride factor", {{2}, {}, {}}, {strided_shard(0, -2)}},
      {"huge stride factor", {{2}, {}, {}}, {strided_shard(0, kMaxWorldSize + 1)}},
      {"partial",
       {{2}, {}, {}},
       {{PlacementKind::kPartial, 0, 0}},
       StatusCode::kFailedPrecondition},
  };
  for (const RefusedCase& each : cases) {
    EXPECT_EQ(Layout::create(each.mesh, each.placements).status().code(), each.code) << each.what;
  }
}

}  // namespace
}  // namespace shardwright

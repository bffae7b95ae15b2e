// SPDX-License-Identifier: Apache-2.0
//
// Layouts as axes: each rank's box is the layout's, and ranks of regular meshes share their axes.
#include "core/layout/shard_axis.h"

#include "tests/core/plan/describe/random_job.h"

namespace shardwright::plan::test {
namespace {

std::vector<ShardAxis> axes_of(const Layout& layout, size_t dimensions, int32_t rank) {
  const auto axes = shard_axes_of(layout, dimensions, rank);
  EXPECT_TRUE(axes.ok()) << axes.status().to_string();
  EXPECT_TRUE(axes.ok() && axes->has_value()) << "rank " << rank << " holds nothing";
  return axes.ok() && axes->has_value() ? **axes : std::vector<ShardAxis>();
}

TEST(ShardAxis, RanksOfARowMajorMeshShareTheirAxes) {
  const auto layout = layout_of({{2, 3, 4}, {}, {}}, {shard(0), replicate(), shard(-1)});
  const std::vector<ShardAxis> expected = {{0, 2, 12, 0}, {1, 4, 1, 0}};
  for (int32_t r = 0; r < 24; ++r) EXPECT_EQ(axes_of(*layout, 2, r), expected) << "rank " << r;
}

TEST(ShardAxis, SubMeshesOfAllGroupsShareTheirAxes) {
  for (int32_t group = 0; group < 5; ++group) {
    const auto neighbours = layout_of({{2}, {}, {2 * group, 2 * group + 1}}, {shard(0)});
    const auto strided = layout_of({{2}, {}, {group, group + 5}}, {shard(0)});
    EXPECT_EQ(axes_of(*neighbours, 1, 2 * group), (std::vector<ShardAxis>{{0, 2, 1, 0}}));
    EXPECT_EQ(axes_of(*strided, 1, group + 5), (std::vector<ShardAxis>{{0, 2, 5, 0}}));
  }
}

TEST(ShardAxis, AMeshThatBeginsBesideItsPeriodHasAPhase) {
  const auto layout = layout_of({{3}, {}, {4, 5, 6}}, {shard(0)});
  for (const int32_t rank : {4, 5, 6})
    EXPECT_EQ(axes_of(*layout, 1, rank), (std::vector<ShardAxis>{{0, 3, 1, 2}}));
}

TEST(ShardAxis, ARankOutsideTheMeshHoldsNothing) {
  const auto layout = layout_of({{2}, {}, {0, 2}}, {shard(0)});
  const auto axes = shard_axes_of(*layout, 1, 1);
  ASSERT_TRUE(axes.ok());
  EXPECT_FALSE(axes->has_value());
}

TEST(ShardAxis, RefusesADimensionThatTheTensorLacks) {
  const auto layout = layout_of({{2}, {}, {}}, {shard(1)});
  EXPECT_FAILURE(shard_axes_of(*layout, 1, 0).status(), StatusCode::kInvalidArgument,
                 "cuts dimension 1 of a tensor of 1 dimensions");
}

TEST(ShardAxis, BoxesAreThoseOfTheLayoutInAnyMesh) {
  RandomSource random;
  for (int i = 0; i < 500; ++i) {
    const Dims shape = random_shape(random);
    Mesh mesh;
    mesh.shape = random_axes(random, random.between(1, 24));
    for (int32_t r = 0; r < element_count_of(mesh.shape); ++r) mesh.ranks.push_back(3 + 2 * r);
    if (random.chance(50))
      std::shuffle(mesh.ranks.begin(), mesh.ranks.end(), std::mt19937_64(random.next()));
    std::vector<Placement> placements;
    for (size_t axis = 0; axis < mesh.shape.size(); ++axis) {
      placements.push_back(shape.empty() || random.chance(30)
                               ? replicate()
                               : shard(static_cast<int32_t>(
                                     random.between(0, static_cast<int64_t>(shape.size()) - 1))));
    }
    const std::vector<int32_t> ranks = mesh.ranks;
    const auto layout = layout_of(std::move(mesh), std::move(placements));
    for (const int32_t rank : ranks) {
      const auto pieces = layout->pieces(shape, rank);
      ASSERT_TRUE(pieces.ok());
      const Box held = box_of_axes(axes_of(*layout, shape.size(), rank), shape, rank);
      if (box_is_empty(held)) {
        for (const Piece& piece : *pieces) ASSERT_TRUE(box_is_empty(piece.box));
      } else {
        ASSERT_EQ(held, (*pieces)[0].box);
      }
    }
  }
}

}  // namespace
}  // namespace shardwright::plan::test

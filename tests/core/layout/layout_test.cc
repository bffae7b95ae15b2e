// SPDX-License-Identifier: Apache-2.0
//
// Layout: the shard rule, what it refuses, and that the pieces of a mesh cover a tensor.
#include "core/layout/layout.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "core/base/limits.h"
#include "tests/support/random_source.h"

namespace shardwright {
namespace {

Placement shard(int32_t dim) {
  return {PlacementKind::kShard, dim, 0};
}
Placement replicate() {
  return {PlacementKind::kReplicate, 0, 0};
}

std::shared_ptr<const Layout> make_layout(Mesh mesh, std::vector<Placement> placements) {
  Result<std::shared_ptr<const Layout>> layout =
      Layout::create(std::move(mesh), std::move(placements));
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
      {"strided shard",
       {{2}, {}, {}},
       {{PlacementKind::kStridedShard, 0, 2}},
       StatusCode::kUnimplemented},
      {"partial", {{2}, {}, {}}, {{PlacementKind::kPartial, 0, 0}}, StatusCode::kUnimplemented},
  };
  for (const RefusedCase& each : cases) {
    EXPECT_EQ(Layout::create(each.mesh, each.placements).status().code(), each.code) << each.what;
  }
}

// Counts how often each element of shape is held by the ranks of the layout.
std::vector<int> holders(const Layout& layout, const Dims& shape, int32_t ranks) {
  std::vector<int> count(static_cast<size_t>(box_element_count(whole_box(shape))));
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const Box box = box_of(layout, shape, rank);
    EXPECT_TRUE(check_box(box, shape).ok()) << box_text(box);
    for (int64_t i = 0; i < box_element_count(box); ++i) {
      int64_t rest = i;
      int64_t flat = 0;
      int64_t step = 1;
      for (size_t d = shape.size(); d-- > 0;) {
        flat += (box.offsets[d] + rest % box.sizes[d]) * step;
        rest /= box.sizes[d];
        step *= shape[d];
      }
      ++count[static_cast<size_t>(flat)];
    }
  }
  return count;
}

TEST(Layout, PiecesOfRandomMeshesHoldEachElementOncePerReplica) {
  test::RandomSource random;
  for (int round = 0; round < 200; ++round) {
    Dims shape(static_cast<size_t>(random.between(1, 3)), 0);
    for (int64_t& extent : shape) extent = random.between(0, 7);
    Mesh mesh;
    mesh.shape = Dims(static_cast<size_t>(random.between(1, 3)), 1);
    std::vector<Placement> placements;
    int replicas = 1;
    int32_t ranks = 1;
    for (int64_t& extent : mesh.shape) {
      extent = random.between(1, 4);
      ranks *= static_cast<int32_t>(extent);
      const bool replicated = random.chance(30);
      if (replicated) replicas *= static_cast<int>(extent);
      const auto last = static_cast<int64_t>(shape.size()) - 1;
      placements.push_back(
          replicated ? replicate() : shard(static_cast<int32_t>(random.between(-last - 1, last))));
    }
    const auto layout = make_layout(mesh, placements);
    for (const int count : holders(*layout, shape, ranks)) ASSERT_EQ(count, replicas);
  }
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
//
// Meshes: what is sound, and where ranks stand.
#include "core/layout/mesh.h"

#include <gtest/gtest.h>

#include "core/base/limits.h"

namespace shardwright {
namespace {

TEST(Mesh, OfNoAxesIsOneRank) {
  EXPECT_EQ(*checked_mesh_size({}), 1);
}

TEST(Mesh, CountsItsRanks) {
  EXPECT_EQ(*checked_mesh_size({{2, 3, 4}, {"a", "b", "c"}, {}}), 24);
  EXPECT_EQ(*checked_mesh_size({{kMaxWorldSize}, {}, {}}), kMaxWorldSize);
}

struct RefusedMesh {
  Mesh mesh;
  std::string_view why;
};

TEST(Mesh, SaysWhatIsWrong) {
  const std::vector<RefusedMesh> cases = {
      {{{-2}, {}, {}}, "-2"},
      {{{4, 0}, {}, {}}, "extent 0"},
      {{{kMaxWorldSize, 2}, {}, {}}, "the limit is"},
      {{Dims(65, 1), {}, {}}, "65 axes"},
      {{{2, 2}, {"dp"}, {}}, "1 axis names for 2 axes"},
      {{{2, 2}, {"dp", "dp"}, {}}, "two mesh axes are called 'dp'"},
      {{{2}, {"\xFF"}, {}}, "axis 0 is not UTF-8"},
  };
  for (const RefusedMesh& each : cases) {
    const Status status = checked_mesh_size(each.mesh).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << each.why;
    EXPECT_NE(status.message().find(each.why), std::string_view::npos) << status.to_string();
  }
}

TEST(Mesh, FindsPositionsByRank) {
  EXPECT_EQ(*positions_by_rank({{3}, {}, {7, 2, 9}}, 3), (std::vector<int32_t>{1, 0, 2}));
  EXPECT_TRUE(positions_by_rank({{3}, {}, {}}, 3)->empty());
}

TEST(Mesh, RefusesRanksThatCannotBe) {
  for (const std::vector<int32_t>& ranks :
       {std::vector<int32_t>{0}, {0, 1, 2, 3}, {0, 4, 0}, {0, -1, 2}}) {
    EXPECT_EQ(positions_by_rank({{3}, {}, ranks}, 3).status().code(), StatusCode::kInvalidArgument);
  }
}

TEST(Mesh, NamesAxesInMessages) {
  EXPECT_EQ(axis_text({{2, 2}, {}, {}}, 1), "axis 1");
  EXPECT_EQ(axis_text({{2, 2}, {"dp", "tp"}, {}}, 1), "axis 1 'tp'");
}

}  // namespace
}  // namespace shardwright

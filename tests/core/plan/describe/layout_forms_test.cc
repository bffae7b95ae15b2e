// SPDX-License-Identifier: Apache-2.0
//
// Layouts beyond rows of chunks: what nests is described by cuts, what does not by boxes, and both
// plan as the explicit planner does.
#include "tests/core/plan/describe/layout_jobs.h"

namespace shardwright::plan::test {
namespace {

Placement strided(int32_t dim, int32_t factor) {
  return {PlacementKind::kStridedShard, dim, factor};
}

uint32_t form_of(const JobEntry& entry, int32_t rank, int32_t ranks) {
  const Result<LocalPlan> local = describe({entry}, {rank, ranks});
  EXPECT_TRUE(local.ok()) << local.status().to_string();
  return local.ok() ? local->description.forms[0] : uint32_t{kNothing};
}

TEST(LayoutForms, FullyShardedWithTensorParallelismNests) {
  const auto layout = layout_of({{4, 2}, {"dp", "tp"}, {}}, {strided(0, 2), shard(0)});
  const JobEntry even = sharded("w", {16, 3}, layout);
  for (int32_t r = 0; r < 8; ++r) EXPECT_GE(form_of(even, r, 8), kFirstLayout) << "rank " << r;
  const Job job = [&](int32_t) {
    return std::vector<JobEntry>{even, sharded("odd", {13}, layout), sharded("few", {3}, layout)};
  };
  expect_layouts_equal_boxes(job, 8);
}

TEST(LayoutForms, StridesThatDoNotNestAreBoxes) {
  const auto layout = layout_of({{4}, {}, {}}, {strided(0, 2)});
  const JobEntry entry = sharded("w", {16}, layout);
  EXPECT_EQ(form_of(entry, 0, 4), kBoxes);
  expect_layouts_equal_boxes([&](int32_t) { return std::vector<JobEntry>{entry}; }, 4);
}

TEST(LayoutForms, TensorMapsNestInTheOrderOfTheirTuples) {
  const auto layout = Layout::create_mapped({{2, 3, 2}, {}, {}}, {{0, 2}, {}});
  ASSERT_TRUE(layout.ok()) << layout.status().to_string();
  const JobEntry entry = sharded("w", {9, 2}, *layout);
  EXPECT_GE(form_of(entry, 5, 12), kFirstLayout);
  expect_layouts_equal_boxes([&](int32_t) { return std::vector<JobEntry>{entry}; }, 12);
}

TEST(LayoutForms, FlatShardsAreBoxes) {
  const auto layout = layout_of({{4}, {}, {}}, {{PlacementKind::kFlat, 0, 0}});
  const JobEntry entry = sharded("w", {3, 5}, layout);
  EXPECT_EQ(form_of(entry, 1, 4), kBoxes);
  expect_layouts_equal_boxes([&](int32_t) { return std::vector<JobEntry>{entry}; }, 4);
}

}  // namespace
}  // namespace shardwright::plan::test

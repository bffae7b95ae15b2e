// SPDX-License-Identifier: Apache-2.0
//
// Where chunks and objects lie in a file.
#include <algorithm>

#include "core/base/limits.h"
#include "tests/core/plan/world.h"

namespace shardwright::plan::test {
namespace {

TEST(FileLayout, LargeChunksComeFirstAlignedThenSlabsThenObjects) {
  const auto limit = static_cast<int64_t>(kSlabChunkLimitBytes) / 4;
  const std::vector<State> states = [&] {
    std::vector<State> all;
    all.push_back(state_of({whole("small", {3}), whole("large", {limit}),
                            whole("smaller", {limit - 1}), whole("larger", {limit + 1})},
                           {{"empty", ""}, {"object", "1234"}}));
    return all;
  }();
  const GlobalSavePlan plan = planned(states);
  const std::vector<WriteItem>& items = plan.lists[0].items;
  ASSERT_EQ(items.size(), 6U);
  const std::vector<uint32_t> entries = {1, 3, 0, 2, 0, 1};
  for (size_t i = 0; i < items.size(); ++i) EXPECT_EQ(items[i].entry, entries[i]) << i;
  EXPECT_EQ(items[0].position, kExtentAlignmentBytes);
  EXPECT_EQ(items[1].position, kExtentAlignmentBytes + kSlabChunkLimitBytes);
  const uint64_t slab = items[1].position + items[1].size_bytes;
  EXPECT_EQ(items[2].position, (slab + 63) / 64 * 64);
  EXPECT_EQ(items[3].position, items[2].position + 64);
  EXPECT_EQ(items[4].size_bytes, 0U);
  EXPECT_EQ(items[5].position % kSlabAlignmentBytes, 0U);
  EXPECT_EQ(plan.lists[0].data_bytes, items[5].position + 4);
  EXPECT_EQ(items[4].piece, kObjectPiece);
}

TEST(FileLayout, ItemsAscendAndTensorsAreSequential) {
  std::vector<Box> boxes;
  for (int64_t i = 0; i < 50; ++i) boxes.push_back(box({49 - i, 0}, {1, 7}));
  std::vector<State> states;
  states.push_back(state_of({{"w", DType::kInt8, {50, 7}, boxes}, whole("v", {3})}));
  const GlobalSavePlan plan = planned(states);
  for (size_t c = 1; c < 50; ++c) {
    EXPECT_LT(plan.catalog.chunks[c - 1].position, plan.catalog.chunks[c].position);
    EXPECT_LT(plan.catalog.chunks[c - 1].offset0, plan.catalog.chunks[c].offset0);
  }
  EXPECT_TRUE(std::is_sorted(
      plan.lists[0].items.begin(), plan.lists[0].items.end(),
      [](const WriteItem& a, const WriteItem& b) { return a.position < b.position; }));
}

TEST(FileLayout, NumbersOnlyFilesThatAreWritten) {
  std::vector<State> states;
  states.push_back(state_of({}));
  states.push_back(state_of({whole("a", {3})}));
  states.push_back(state_of({{"z", DType::kInt8, {0}, {}}}));
  states.push_back(state_of({}, {{"empty", ""}}));
  const GlobalSavePlan plan = planned(states);
  EXPECT_EQ(plan.file_ranks, (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(plan.catalog.chunks[0].place, 0U);
  EXPECT_EQ(plan.catalog.objects[0].place, 1U);
  EXPECT_EQ(plan.catalog.tensors.size(), 2U);
  EXPECT_EQ(plan.lists[3].data_bytes, kExtentAlignmentBytes);
}

TEST(FileLayout, RefusesAFileThatIsTooLarge) {
  // Each tensor fits, all of them do not.
  std::vector<Holding> holdings;
  for (int i = 0; i < 5; ++i) {
    holdings.push_back({"w" + std::to_string(i),
                        DType::kInt8,
                        {int64_t{1} << 60},
                        {box({0}, {int64_t{1} << 60})}});
  }
  std::vector<State> states;
  states.push_back(state_of(holdings));
  EXPECT_FAILURE(plan_save(states).status(), StatusCode::kResourceExhausted, "rank 0", "2^62");
}

}  // namespace
}  // namespace shardwright::plan::test

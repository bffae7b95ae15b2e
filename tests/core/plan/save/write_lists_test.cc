// SPDX-License-Identifier: Apache-2.0
//
// What each rank writes, in which order.
#include <algorithm>

#include "tests/core/plan/world.h"

namespace shardwright::plan::test {
namespace {

TEST(WriteLists, HaveTheOrderOfTheCatalog) {
  std::vector<State> states;
  states.push_back(state_of({whole("small", {3}), whole("large", {100000}), whole("none", {0})},
                            {{"empty", ""}, {"object", "1234"}}));
  const PlannedSave plan = planned(states);
  const std::vector<WriteItem>& items = plan.lists[0].items;
  ASSERT_EQ(items.size(), 4U);
  EXPECT_EQ(items[0].entry, 0U);
  EXPECT_EQ(items[1].entry, 1U);
  EXPECT_EQ(items[1].size_bytes, 400000U);
  EXPECT_EQ(items[2].piece, kObjectPiece);
  EXPECT_EQ(items[2].size_bytes, 0U);
  EXPECT_EQ(items[3].size_bytes, 4U);
  EXPECT_EQ(plan.lists[0].payload_bytes(), 12U + 400000U + 4U);
}

TEST(WriteLists, ListTheBoxesOfATensorRowByRow) {
  std::vector<Box> boxes;
  for (int64_t i = 0; i < 50; ++i) boxes.push_back(box({49 - i, 0}, {1, 7}));
  std::vector<State> states;
  states.push_back(state_of({{"w", DType::kInt8, {50, 7}, boxes}, whole("v", {3})}));
  const PlannedSave plan = planned(states);
  for (uint32_t c = 0; c < 50; ++c) EXPECT_EQ(plan.lists[0].items[c].piece, 49 - c);
}

TEST(WriteLists, AreEmptyForRanksThatWriteNothing) {
  std::vector<State> states;
  states.push_back(state_of({}));
  states.push_back(state_of({whole("a", {3})}));
  states.push_back(state_of({{"z", DType::kInt8, {0}, {}}}));
  states.push_back(state_of({}, {{"empty", ""}}));
  const PlannedSave plan = planned(states);
  for (size_t r = 0; r < 4; ++r) EXPECT_EQ(plan.lists[r].items.empty(), r == 0 || r == 2) << r;
  EXPECT_EQ(plan.catalog.place_of(0), 1U);
  EXPECT_EQ(plan.catalog.objects[0].place, 3U);
  EXPECT_EQ(plan.catalog.tensors.size(), 2U);
}

}  // namespace
}  // namespace shardwright::plan::test

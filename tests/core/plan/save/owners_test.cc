// SPDX-License-Identifier: Apache-2.0
//
// Who writes what several ranks hold.
#include "tests/core/plan/world.h"

namespace shardwright::plan::test {
namespace {

// Bytes that each rank writes.
std::vector<uint64_t> written(const PlannedSave& plan) {
  std::vector<uint64_t> bytes;
  for (const RankList& list : plan.lists) {
    bytes.push_back(0);
    for (const WriteItem& item : list.items) bytes.back() += item.size_bytes;
  }
  return bytes;
}

std::vector<State> equal_states(int ranks, const std::vector<Holding>& holdings,
                                const std::vector<Bytes>& objects = {}) {
  std::vector<State> states;
  for (int r = 0; r < ranks; ++r) states.push_back(state_of(holdings, objects));
  return states;
}

TEST(Owners, BalancesBytesLargestFirst) {
  const std::vector<State> states =
      equal_states(2, {whole("a", {1}), whole("b", {2}), whole("c", {6}), whole("d", {5})});
  // 6 to rank 0, 5 to rank 1, 2 to rank 1, 1 to rank 0.
  EXPECT_EQ(written(planned(states)), (std::vector<uint64_t>{28, 28}));
}

TEST(Owners, TiesGoToTheLowestRank) {
  const PlannedSave plan =
      planned(equal_states(3, {whole("a", {4}), whole("b", {4}), whole("c", {4})}));
  EXPECT_EQ(plan.catalog.place_of(0), 0U);
  EXPECT_EQ(plan.catalog.place_of(1), 1U);
  EXPECT_EQ(plan.catalog.place_of(2), 2U);
}

TEST(Owners, CountsWhatOnlyOneRankHoldsFirst) {
  std::vector<State> states;
  states.push_back(state_of({whole("shared", {10}), whole("own", {100}, EntryKind::kRankLocal)}));
  states.push_back(state_of({whole("shared", {10})}));
  EXPECT_EQ(written(planned(states)), (std::vector<uint64_t>{400, 40}));
}

TEST(Owners, LowestRankWritesAllWhenAskedFor) {
  SaveRules rules;
  rules.owner = OwnerRule::kLowestRank;
  const PlannedSave plan =
      planned(equal_states(3, {whole("a", {4}), whole("b", {4})}, {{"o", "1"}}), rules);
  EXPECT_EQ(plan.lists[0].items.size(), 3U);
  EXPECT_TRUE(plan.lists[2].items.empty());
}

TEST(Owners, OnlyAHolderWrites) {
  std::vector<State> states;
  states.push_back(state_of({whole("a", {1000})}));
  states.push_back(state_of({whole("b", {1}), whole("c", {1})}));
  states.push_back(state_of({whole("c", {1}), whole("b", {1})}));
  const PlannedSave plan = planned(states);
  EXPECT_EQ(written(plan), (std::vector<uint64_t>{4000, 4, 4}));
}

TEST(Owners, ReplicatedBoxesOfAShardedTensorAreWrittenOnce) {
  std::vector<State> states;
  for (int r = 0; r < 4; ++r) {
    const int64_t half = r / 2;
    states.push_back(state_of({{"w", DType::kFloat32, {8}, {box({4 * half}, {4})}}}));
  }
  const PlannedSave plan = planned(states);
  EXPECT_EQ(plan.catalog.chunk_count(), 2U);
  EXPECT_EQ(plan.catalog.place_of(0), 0U);
  EXPECT_EQ(plan.catalog.place_of(1), 2U);
}

TEST(Owners, ObjectsFollowTheBytesOfTensors) {
  const PlannedSave plan = planned(equal_states(2, {whole("a", {4})}, {{"o", "12345678"}}));
  EXPECT_EQ(written(plan), (std::vector<uint64_t>{16, 8}));
}

}  // namespace
}  // namespace shardwright::plan::test

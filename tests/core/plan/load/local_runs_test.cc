// SPDX-License-Identifier: Apache-2.0
//
// Boxes of one entry that share local memory: refused by loads, harmless in saves.

#include "core/plan/load/make_load_plan.h"
#include "core/plan/load/match_internal.h"
#include "tests/core/plan/world.h"

namespace shardwright::plan::test {
namespace {

// A tensor of 8 rows of 2, wanted as boxes of rows that begin at these elements of local memory.
struct Rows {
  int64_t first = 0;
  int64_t count = 0;
  int64_t local_offset = 0;
};

class LocalRuns : public testing::Test {
 protected:
  State wanting(const std::vector<Rows>& rows) {
    TensorEntry entry;
    entry.name = "w";
    entry.local.data = reinterpret_cast<std::byte*>(memory_.data());
    entry.local.dtype = DType::kFloat32;
    entry.local.shape = Dims{static_cast<int64_t>(memory_.size())};
    entry.global_shape = Dims{8, 2};
    for (const Rows& each : rows)
      entry.pieces.push_back({box({each.first, 0}, {each.count, 2}), each.local_offset});
    State state;
    const Status added = state.add_tensors({entry});
    EXPECT_TRUE(added.ok()) << added.to_string();
    return state;
  }

  Catalog stored() {
    std::vector<State> states;
    states.push_back(state_of({whole("w", {8, 2})}));
    return planned(states).catalog;
  }

  Result<LoadPlan> plan_for(const State& state) { return make_load_plan(state, stored(), {}, 0); }

  std::vector<float> memory_ = std::vector<float>(16);
};

TEST_F(LocalRuns, MayTouchAndComeInAnyOrder) {
  EXPECT_TRUE(plan_for(wanting({{0, 3, 0}, {4, 2, 6}, {7, 1, 12}})).ok());
  EXPECT_TRUE(plan_for(wanting({{4, 2, 6}, {7, 1, 12}, {0, 3, 0}})).ok());
  EXPECT_TRUE(plan_for(wanting({{0, 2, 0}, {0, 2, 4}})).ok()) << "the same rows twice, apart";
  EXPECT_TRUE(plan_for(wanting({{0, 2, 0}, {3, 0, 2}, {4, 2, 4}})).ok()) << "an empty box";
}

TEST_F(LocalRuns, ThatOverlapAreRefusedWithTensorAndBoxes) {
  const Status status = plan_for(wanting({{0, 2, 0}, {4, 2, 3}})).status();
  EXPECT_FAILURE(status, StatusCode::kInvalidArgument, "'w'", "elements 3 to 3");
  EXPECT_EQ(status.detail("tensor"), "w");
  for (const std::vector<Rows>& rows : {std::vector<Rows>{{0, 2, 0}, {4, 2, 0}},
                                        {{4, 1, 2}, {0, 4, 0}},
                                        {{6, 1, 9}, {0, 3, 4}, {3, 2, 0}},
                                        {{0, 1, 0}, {1, 1, 4}, {2, 2, 1}}}) {
    EXPECT_FAILURE(plan_for(wanting(rows)).status(), StatusCode::kInvalidArgument, "overwrite");
  }
}

TEST_F(LocalRuns, ThatOverlapMayBeSaved) {
  std::vector<State> states;
  states.push_back(wanting({{0, 4, 0}, {4, 4, 0}}));
  EXPECT_EQ(planned(states).catalog.tensors.size(), 1U);
}

TEST_F(LocalRuns, ThatOverlapAreFoundInAPlanFromElsewhere) {
  const LoadPlan plan = *plan_for(wanting({{0, 2, 0}, {4, 2, 4}}));
  EXPECT_TRUE(check_load_plan(plan, wanting({{0, 2, 0}, {4, 2, 4}}), stored()).ok());
  EXPECT_FAILURE(check_load_plan(plan, wanting({{0, 2, 0}, {4, 2, 3}}), stored()),
                 StatusCode::kInvalidArgument, "'w'");
}

TEST_F(LocalRuns, WindowsOfOneLocalTensorMayNotOverlap) {
  const auto wanting_windows = [this](int64_t second_offset) {
    TensorEntry entry;
    entry.name = "w";
    entry.local.data = reinterpret_cast<std::byte*>(memory_.data());
    entry.local.dtype = DType::kFloat32;
    entry.local.shape = Dims{4, 4};
    entry.global_shape = Dims{8, 2};
    entry.pieces = {{box({0, 0}, {4, 2}), 0}, {box({4, 0}, {4, 1}), second_offset}};
    State state;
    EXPECT_TRUE(state.add_tensors({entry}).ok());
    return state;
  };
  EXPECT_TRUE(plan_for(wanting_windows(2)).ok());
  EXPECT_TRUE(plan_for(wanting_windows(3)).ok());
  EXPECT_FAILURE(plan_for(wanting_windows(1)).status(), StatusCode::kInvalidArgument, "'w'",
                 "the window [0:4, 1:2]");
}

// Comparing each with each would outlast the time limit of the program.
TEST_F(LocalRuns, AreCheckedByTheHundredThousand) {
  constexpr int64_t kRows = 200000;
  std::vector<std::byte> bytes(kRows);
  TensorEntry entry;
  entry.name = "w";
  entry.local.data = bytes.data();
  entry.local.dtype = DType::kUint8;
  entry.local.shape = entry.global_shape = Dims{kRows};
  for (int64_t row = 0; row < kRows; ++row)  // last first, so that they have to be sorted
    entry.pieces.push_back({box({row}, {1}), kRows - 1 - row});
  State state;
  ASSERT_TRUE(state.add_tensors({entry}).ok());
  EXPECT_TRUE(internal::check_local_runs_apart(state.tensors()[0]).ok());
}

}  // namespace
}  // namespace shardwright::plan::test

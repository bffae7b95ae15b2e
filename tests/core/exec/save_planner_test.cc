// SPDX-License-Identifier: Apache-2.0
//
// The save with plans that the host moves: order of steps, wrong plans, results of other saves.
#include <list>
#include <utility>

#include <gtest/gtest.h>

#include "core/format/native/native_checkpoint.h"
#include "core/format/native/native_format.h"
#include "tests/core/exec/save_world.h"
#include "tests/support/fake_clock.h"

namespace shardwright::exec::test {
namespace {

class SavePlannerTest : public testing::Test {
 protected:
  using Planner = std::unique_ptr<SavePlanner>;

  // Planners of all ranks of a world, rank 0 the coordinator.
  void make_planners(const World& world, const SaveOptions& options = {}) {
    planners_.clear();
    const auto world_size = static_cast<int32_t>(world.ranks.size());
    for (int32_t rank = 0; rank < world_size; ++rank) {
      auto planner = SavePlanner::create(*runtime_, world.ranks[static_cast<size_t>(rank)].state,
                                         options, {rank, world_size});
      ASSERT_TRUE(planner.ok()) << planner.status().to_string();
      planners_.push_back(std::move(*planner));
    }
  }
  // A world that nobody else keeps: its memory must outlive the planners.
  void make_planners(World&& world, const SaveOptions& options = {}) {
    worlds_.push_back(std::move(world));
    make_planners(std::as_const(worlds_.back()), options);
  }
  std::vector<Bytes> local_plans() {
    std::vector<Bytes> locals;
    for (const Planner& planner : planners_) {
      auto local = planner->local_plan(call_);
      EXPECT_TRUE(local.ok()) << local.status().to_string();
      locals.push_back(std::move(*local));
    }
    return locals;
  }
  // Up to the lists that every rank has accepted.
  void plan_all() {
    auto lists = planners_[0]->global_plan(local_plans(), location_, call_);
    ASSERT_TRUE(lists.ok()) << lists.status().to_string();
    for (size_t rank = 0; rank < planners_.size(); ++rank) {
      const Status finished = planners_[rank]->finish((*lists)[rank]);
      ASSERT_TRUE(finished.ok()) << finished.to_string();
    }
  }
  std::vector<Bytes> execute_all() {
    std::vector<Bytes> results;
    for (const Planner& planner : planners_) {
      auto result = planner->execute(location_, call_);
      EXPECT_TRUE(result.ok()) << result.status().to_string();
      results.push_back(result.ok() ? std::move(*result) : Bytes());
    }
    return results;
  }

  std::unique_ptr<Runtime> runtime_ = make_runtime();
  format::Location location_{storage::make_memory_storage(), "ckpt"};
  CallContext call_;
  std::list<World> worlds_;
  std::vector<Planner> planners_;
};

TEST_F(SavePlannerTest, HostsMayMoveThePlansThemselves) {
  const World world = make_world(3, 11);
  make_planners(world);
  plan_all();
  const auto report = planners_[0]->commit(execute_all(), location_, call_);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->operation, "save");
  EXPECT_EQ(report->tensors, world.tensors.size());
  EXPECT_TRUE(stores(*runtime_, location_, world));
}

// Threads gather and digest; neither plans nor files know how many there were.
TEST_F(SavePlannerTest, AnyNumberOfThreadsGivesTheSamePlansAndFiles) {
  const World world = make_world(3, 11);
  const shardwright::test::FakeClock clock;  // generations have the time in them
  std::vector<Bytes> plans;
  std::vector<std::pair<std::string, std::vector<std::byte>>> files;
  for (const int32_t threads : {1, 2, 7}) {
    RuntimeOptions options;
    options.threads = threads;
    options.random = counting_random(5);
    options.clock = &clock;
    runtime_ = std::move(*Runtime::create(options));
    location_ = {storage::make_memory_storage(), "ckpt"};
    make_planners(world);
    std::vector<Bytes> made = local_plans();
    auto lists = planners_[0]->global_plan(made, location_, call_);
    ASSERT_TRUE(lists.ok()) << lists.status().to_string();
    for (size_t rank = 0; rank < planners_.size(); ++rank) {
      ASSERT_TRUE(planners_[rank]->finish((*lists)[rank]).ok());
      made.push_back((*lists)[rank]);
    }
    ASSERT_TRUE(planners_[0]->commit(execute_all(), location_, call_).ok());
    planners_.clear();
    if (plans.empty()) {
      plans = made;
      files = contents(location_);
    }
    EXPECT_EQ(made, plans) << threads << " threads";
    EXPECT_EQ(contents(location_), files) << threads << " threads";
  }
  EXPECT_EQ(plans.size(), 6U);
  EXPECT_GT(files.size(), 3U);
}

TEST_F(SavePlannerTest, StepsComeInOrderAndOnce) {
  make_planners(make_small_world(1, 1));
  SavePlanner& planner = *planners_[0];
  const StatusCode kRefused = StatusCode::kFailedPrecondition;
  EXPECT_EQ(planner.finish({}).code(), kRefused);
  EXPECT_EQ(planner.execute(location_, call_).status().code(), kRefused);
  EXPECT_EQ(planner.commit({}, location_, call_).status().code(), kRefused);
  plan_all();
  EXPECT_EQ(planner.finish({}).code(), kRefused);
  EXPECT_EQ(planner.global_plan({}, location_, call_).status().code(), kRefused);
  const std::vector<Bytes> results = execute_all();
  EXPECT_EQ(planner.execute(location_, call_).status().code(), kRefused);
  ASSERT_TRUE(planner.commit(results, location_, call_).ok());
  EXPECT_EQ(planner.commit(results, location_, call_).status().code(), kRefused);
}

TEST_F(SavePlannerTest, AListOfAnotherRankOrStateIsRefused) {
  make_planners(make_small_world(2, 1));
  auto lists = planners_[0]->global_plan(local_plans(), location_, call_);
  ASSERT_TRUE(lists.ok());
  EXPECT_EQ(planners_[1]->finish((*lists)[0]).code(), StatusCode::kFailedPrecondition);
  const World other = make_world(2, 1);
  auto planner = SavePlanner::create(*runtime_, other.ranks[1].state, SaveOptions(), {1, 2});
  ASSERT_TRUE((*planner)->local_plan(call_).ok());
  EXPECT_EQ((*planner)->finish((*lists)[1]).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(planners_[1]->finish(Bytes(100)).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(planners_[1]->finish((*lists)[1]).ok());
}

TEST_F(SavePlannerTest, ResultsOfAnotherSaveAreRefusedAndTheGenerationGoes) {
  const World world = make_small_world(2, 1);
  make_planners(world);
  plan_all();
  std::vector<Bytes> stale = execute_all();
  ASSERT_TRUE(planners_[0]->commit(stale, location_, call_).ok());
  make_planners(make_small_world(2, 2));
  plan_all();
  std::vector<Bytes> results = execute_all();
  results[1] = stale[1];
  const auto report = planners_[0]->commit(results, location_, call_);
  EXPECT_EQ(report.status().code(), StatusCode::kFailedPrecondition) << report.status().to_string();
  EXPECT_EQ(report.status().detail("rank"), "1");
  EXPECT_TRUE(stores(*runtime_, location_, world));
  EXPECT_EQ(format::native::list_generations(location_)->size(), 1U);
}

TEST_F(SavePlannerTest, AMissingResultSaysThatItsRankFailed) {
  make_planners(make_small_world(2, 1));
  plan_all();
  std::vector<Bytes> results = execute_all();
  results[1].clear();
  const auto report = planners_[0]->commit(results, location_, call_);
  EXPECT_EQ(report.status().code(), StatusCode::kAborted);
  EXPECT_EQ(report.status().detail("rank"), "1");
  EXPECT_EQ(format::native::list_generations(location_)->size(), 0U);
}

TEST_F(SavePlannerTest, TooFewResultsAreRefused) {
  make_planners(make_small_world(2, 1));
  plan_all();
  std::vector<Bytes> results = execute_all();
  results.pop_back();
  EXPECT_EQ(planners_[0]->commit(results, location_, call_).status().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(SavePlannerTest, AFileThatTheCoordinatorCannotSeeIsNamed) {
  make_planners(make_small_world(2, 1));
  plan_all();
  const format::Location elsewhere{storage::make_memory_storage(), "ckpt"};
  std::vector<Bytes> results;
  results.push_back(*planners_[0]->execute(location_, call_));
  results.push_back(*planners_[1]->execute(elsewhere, call_));
  const Status status = planners_[0]->commit(results, location_, call_).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
  EXPECT_EQ(status.detail("rank"), "1");
  EXPECT_NE(status.detail("file").find("rank-00001.shw"), std::string_view::npos);
  EXPECT_FALSE(status.detail("hint").empty());
}

TEST_F(SavePlannerTest, AFileThatChangedSinceItsRankWroteItIsDamage) {
  for (const bool cut : {true, false}) {
    make_planners(make_small_world(2, 1));
    plan_all();
    const std::vector<Bytes> results = execute_all();
    const auto generations = format::native::list_generations(location_);
    const std::string key = generations->front().keys[1];
    auto bytes = *storage::read_all(*location_.storage, key, UINT64_MAX / 2);
    if (cut) bytes.pop_back();
    if (!cut) bytes[bytes.size() - 100] ^= std::byte{1};
    ASSERT_TRUE(location_.storage->remove(key).ok());
    storage::OpenOptions create;
    create.mode = storage::OpenMode::kCreateVisible;
    auto object = location_.storage->open(key, create);
    ASSERT_TRUE((*object)->write_at(0, bytes).ok());
    const Status status = planners_[0]->commit(results, location_, call_).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status.to_string();
    EXPECT_EQ(status.detail("rank"), "1");
    EXPECT_EQ(status.detail("file"), key);
  }
}

TEST_F(SavePlannerTest, TheLoserOfTwoSavesAtOnePathIsAborted) {
  const World first = make_small_world(1, 1);
  const World winner = make_small_world(1, 2);
  for (const bool exists : {false, true}) {
    make_planners(make_small_world(1, 3));
    plan_all();
    const std::vector<Bytes> results = execute_all();
    ASSERT_TRUE(save_world(*runtime_, exists ? winner : first, location_)[0].ok());
    const auto report = planners_[0]->commit(results, location_, call_);
    EXPECT_EQ(report.status().code(), StatusCode::kAborted) << report.status().to_string();
    EXPECT_TRUE(report.status().retryable());
    EXPECT_TRUE(stores(*runtime_, location_, exists ? winner : first));
    // The winner removed what it replaced, the loser what it wrote.
    EXPECT_EQ(format::native::list_generations(location_)->size(), 1U);
  }
}

TEST_F(SavePlannerTest, AbandonRemovesWhatTheRankWrote) {
  make_planners(make_small_world(2, 1));
  plan_all();
  execute_all();
  planners_[1]->abandon(location_);
  for (const std::string& key : keys_at(location_))
    EXPECT_EQ(key.find("rank-00001"), std::string::npos) << key;
  planners_[0]->abandon(location_);
  EXPECT_TRUE(format::native::list_generations(location_)->empty());
  EXPECT_EQ(planners_[0]->commit({}, location_, call_).status().code(),
            StatusCode::kFailedPrecondition);
}

TEST_F(SavePlannerTest, ACoordinatorThatIsDroppedLeavesNothing) {
  const World old = make_small_world(2, 1);
  ASSERT_TRUE(save_world(*runtime_, old, location_)[0].ok());
  const auto before = contents(location_);
  make_planners(make_small_world(2, 2));
  plan_all();
  execute_all();
  planners_.clear();
  EXPECT_EQ(contents(location_), before);
}

TEST_F(SavePlannerTest, PositionsOutsideTheWorldAreRefused) {
  const World world = make_small_world(1, 1);
  for (const plan::RankPosition position :
       {plan::RankPosition{-1, 1}, plan::RankPosition{1, 1}, plan::RankPosition{0, 0}}) {
    EXPECT_EQ(SavePlanner::create(*runtime_, world.ranks[0].state, SaveOptions(), position)
                  .status()
                  .code(),
              StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace shardwright::exec::test

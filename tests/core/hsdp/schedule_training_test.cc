// SPDX-License-Identifier: Apache-2.0
//
// When something is gathered, kept or done beside does not change a bit (T6, T7, T8, T12).
#include <gtest/gtest.h>

#include "tests/core/hsdp/training.h"

namespace shardwright::test {
namespace {

TrainingCase sharded_over(int32_t world) {
  TrainingCase plan;
  plan.mesh.shard = world;
  plan.steps = 6;
  return plan;
}

TEST(ScheduledTraining, T6WhatBecomesOfParametersAfterForwardChangesNothing) {
  for (const hsdp::ReshardPolicy policy :
       {hsdp::ReshardPolicy::kAutomatic, hsdp::ReshardPolicy::kReshard, hsdp::ReshardPolicy::kKeep,
        hsdp::ReshardPolicy::kSecondary}) {
    TrainingCase plan = sharded_over(4);
    plan.mesh.secondary = 2;
    plan.settings.reshard_after_forward = policy;
    plan.settings.secondary_size = 2;
    SCOPED_TRACE(static_cast<int32_t>(policy));
    expect_trains_like_one_process(plan);
  }
}

TEST(ScheduledTraining, T6SecondaryShardsServeBackward) {
  TrainingCase plan = sharded_over(4);
  plan.mesh.secondary = 2;
  plan.settings.reshard_after_forward = hsdp::ReshardPolicy::kSecondary;
  plan.settings.secondary_size = 2;
  RankMeshes meshes(plan.mesh);
  expect_all_ok(run_ranks(4, [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto trainer, RankTrainer::create(plan, rank, meshes.take(rank)));
    SHW_RETURN_IF_ERROR(trainer->forward(0, 0));
    EXPECT_EQ(trainer->units()[0]->state(), hsdp::UnitState::kSecondary);
    const auto memory = trainer->context().stats().memory;
    EXPECT_GT(memory.of(hsdp::BufferKind::kSecondary).current_bytes, 0U);
    SHW_RETURN_IF_ERROR(trainer->backward(0));
    EXPECT_EQ(trainer->context().stats().memory.of(hsdp::BufferKind::kSecondary).current_bytes, 0U);
    return {};
  }));
}

TEST(ScheduledTraining, T7GatheringAheadChangesNothing) {
  for (const int32_t depth : {0, 1, 2}) {
    TrainingCase plan = sharded_over(3);
    plan.options.prefetch_depth = depth;
    SCOPED_TRACE(depth);
    expect_trains_like_one_process(plan);
  }
  TrainingCase limited = sharded_over(3);
  limited.options.prefetch_depth = 2;
  limited.options.prefetch_bytes_max = 5000;
  expect_trains_like_one_process(limited);
}

// Runs with lists of its own, and one more unit that is gathered and never used.
std::vector<Parameters> train_with_lists(const TrainingCase& plan, bool wrong) {
  RankMeshes meshes(plan.mesh);
  std::vector<Parameters> results(static_cast<size_t>(plan.mesh.world()));
  expect_all_ok(run_ranks(plan.mesh.world(), [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto trainer, RankTrainer::create(plan, rank, meshes.take(rank)));
    SHW_ASSIGN_OR_RETURN(hsdp::Unit * unused, trainer->context().create_unit("unused", {}));
    std::vector<hsdp::ParameterInput> inputs(1);
    inputs[0].spec.fqn = "unused.weight";
    inputs[0].spec.shape = {5, 3};
    SHW_RETURN_IF_ERROR(unused->add_parameters(std::move(inputs)));
    SHW_RETURN_IF_ERROR(unused->seal());
    std::vector<hsdp::Unit*>& units = trainer->units();
    std::vector<hsdp::Unit*> ahead = {units[1], units[2]};
    if (wrong) ahead = {unused, units[0]};
    SHW_RETURN_IF_ERROR(units[0]->set_forward_prefetch(ahead));
    SHW_RETURN_IF_ERROR(units[1]->set_backward_prefetch(ahead));
    for (int32_t step = 0; step < plan.steps; ++step) {
      SHW_RETURN_IF_ERROR(trainer->run_step(step));
      EXPECT_TRUE(trainer->context().stats().unsharded.empty());
    }
    SHW_ASSIGN_OR_RETURN(results[static_cast<size_t>(rank)], trainer->whole_parameters());
    return {};
  }));
  return results;
}

TEST(ScheduledTraining, T7ListsOfTheHostChangeNothingRightOrWrong) {
  const TrainingCase plan = sharded_over(2);
  const std::vector<Parameters> expected(2, train_alone(plan));
  EXPECT_EQ(train_with_lists(plan, false), expected);
  EXPECT_EQ(train_with_lists(plan, true), expected);
}

TEST(ScheduledTraining, T7WhatWasGatheredBeforeAStepIsNotUsedAfterIt) {
  const TrainingCase plan = sharded_over(2);
  RankMeshes meshes(plan.mesh);
  std::vector<Parameters> results(2);
  expect_all_ok(run_ranks(2, [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto trainer, RankTrainer::create(plan, rank, meshes.take(rank)));
    for (int32_t step = 0; step < plan.steps; ++step) {
      SHW_RETURN_IF_ERROR(trainer->forward(step, 0));
      SHW_RETURN_IF_ERROR(trainer->backward(step));
      SHW_ASSIGN_OR_RETURN(const collective::WorkPtr stale, trainer->units()[0]->unshard());
      // Shards stay as they are while they are gathered, so this one ends before the step.
      SHW_RETURN_IF_ERROR(trainer->context().step_event());
      SHW_ASSIGN_OR_RETURN(const collective::WorkPtr kept, trainer->units()[1]->unshard());
      SHW_RETURN_IF_ERROR(kept->wait(-1).status());
      SHW_RETURN_IF_ERROR(trainer->optimize());
      EXPECT_TRUE(stale->wait(-1).ok());
      EXPECT_EQ(trainer->units()[0]->state(), hsdp::UnitState::kSharded);
      EXPECT_EQ(trainer->units()[1]->state(), hsdp::UnitState::kSharded);
    }
    SHW_ASSIGN_OR_RETURN(results[static_cast<size_t>(rank)], trainer->whole_parameters());
    return {};
  }));
  EXPECT_EQ(results, std::vector<Parameters>(2, train_alone(plan)));
}

TEST(ScheduledTraining, T8LanesAndCommunicatorsOfTheirOwnChangeNothing) {
  for (const bool separate : {false, true}) {
    for (const int32_t lanes : {0, 1, 2, 3}) {
      for (const int32_t inflight : {1, 3}) {
        TrainingCase plan = sharded_over(2);
        plan.mesh.replicate = 2;
        plan.mesh.separate_reduce = separate;
        plan.options.lanes = lanes;
        plan.options.max_inflight_reduce = inflight;
        SCOPED_TRACE(testing::Message() << separate << lanes << inflight);
        expect_trains_like_one_process(plan);
      }
    }
  }
}

TEST(ScheduledTraining, T8LanesThatRunWhereTheyAreGivenWorkChangeNothing) {
  TrainingCase plan = sharded_over(3);
  plan.options.lanes = 3;
  plan.inline_lanes = true;
  expect_trains_like_one_process(plan);
}

TEST(ScheduledTraining, T12OneLastBackwardAfterSeveral) {
  for (const int32_t replicate : {1, 2}) {
    TrainingCase plan = sharded_over(2);
    plan.mesh.replicate = replicate;
    plan.micro_batches = 3;
    plan.one_finalize = true;
    SCOPED_TRACE(replicate);
    expect_trains_like_one_process(plan);
  }
}

}  // namespace
}  // namespace shardwright::test

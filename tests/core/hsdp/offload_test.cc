// SPDX-License-Identifier: Apache-2.0
//
// Shards and gradients that stay with the host have the bits of those that do not (T13). Where the
// device is the host nothing is copied.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/core/hsdp/test_memory.h"
#include "tests/core/hsdp/training.h"

namespace shardwright::test {
namespace {

TrainingCase offloaded_over(int32_t replicate, int32_t shard) {
  TrainingCase plan;
  plan.mesh.replicate = replicate;
  plan.mesh.shard = shard;
  plan.unit.offload = true;
  return plan;
}

TEST(Offload, T13HasTheBitsOfShardsOnTheDevice) {
  for (const auto& [replicate, shard] :
       std::vector<std::pair<int32_t, int32_t>>{{1, 1}, {1, 3}, {2, 2}, {3, 1}}) {
    for (const DType narrow : {DType::kInvalid, DType::kBfloat16}) {
      TrainingCase plan = offloaded_over(replicate, shard);
      plan.unit.parameter_dtype = narrow;
      plan.unit.reduce_dtype = DType::kFloat32;
      plan.replicate_biases = true;
      SCOPED_TRACE(testing::Message() << replicate << " x " << shard << " " << dtype_name(narrow));
      expect_trains_like_one_process(plan);
    }
  }
}

TEST(Offload, T13InEveryLayoutAndPolicy) {
  for (const hsdp::LayoutMode mode : {hsdp::LayoutMode::kRow, hsdp::LayoutMode::kRagged}) {
    for (const auto policy : {hsdp::ReshardPolicy::kReshard, hsdp::ReshardPolicy::kKeep}) {
      for (const bool keeps_memory : {false, true}) {
        TrainingCase plan = offloaded_over(1, 3);
        plan.unit.layout_mode = mode;
        plan.settings.reshard_after_forward = policy;
        plan.settings.keep_unsharded_memory = keeps_memory;
        plan.steps = 5;
        expect_trains_like_one_process(plan);
      }
    }
  }
}

// Gradients of earlier micro-batches are with the host when the next ones come.
TEST(Offload, T13SumsOfSeveralMicroBatches) {
  for (const Accumulation each :
       {Accumulation::kReduceEach, Accumulation::kScatterEach, Accumulation::kReduceAtTheEnd}) {
    TrainingCase plan = offloaded_over(2, 2);
    plan.micro_batches = 3;
    plan.accumulation = each;
    expect_trains_like_one_process(plan);
  }
}

// What is trained changes while there are gradients.
TEST(Offload, T13FrozenParametersThatAreTrainedLater) {
  TrainingCase plan = offloaded_over(1, 2);
  plan.frozen = {false, true, true, true, false, true};
  plan.unfreeze_step = 5;
  expect_trains_like_one_process(plan);
}

TEST(Offload, SaysThatShardsLieWithTheHost) {
  const TrainingCase plan = offloaded_over(1, 1);
  RankMeshes meshes(plan.mesh);
  const auto trainer = RankTrainer::create(plan, 0, meshes.take(0)).value();
  ASSERT_TRUE(trainer->forward(0, 0).ok());
  ASSERT_TRUE(trainer->backward(0).ok());
  hsdp::Unit& unit = *trainer->units()[0];
  EXPECT_TRUE(lies_with_host(unit.local(0).value()));
  EXPECT_TRUE(lies_with_host(unit.gradient(0).value()));
  EXPECT_EQ(unit.shard_place().type, 1);
  ASSERT_TRUE(unit.unshard().value()->wait(-1).ok());
  EXPECT_EQ(lies_with_host(unit.full(0).value()), trainer->context().device().is_host());
}

// Sums of what was brought to the host a moment ago.
TEST(Offload, NormsAndFactorsAreThoseOfTheDevice) {
  std::vector<double> norms;
  for (const bool offload : {false, true}) {
    TrainingCase plan = offloaded_over(1, 1);
    plan.unit.offload = offload;
    RankMeshes meshes(plan.mesh);
    const auto trainer = RankTrainer::create(plan, 0, meshes.take(0)).value();
    ASSERT_TRUE(trainer->forward(0, 0).ok());
    ASSERT_TRUE(trainer->backward(0).ok());
    norms.push_back(trainer->context().global_norm(2.0).value());
    ASSERT_TRUE(trainer->context().scale_gradients(0.5).ok());
    norms.push_back(trainer->context().global_norm(INFINITY).value());
  }
  EXPECT_GT(norms[0], 0);
  EXPECT_EQ(norms[0], norms[2]);
  EXPECT_EQ(norms[1], norms[3]);
}

}  // namespace
}  // namespace shardwright::test

// SPDX-License-Identifier: Apache-2.0
//
// Training on ranks has the bits of one process that adds in the same order (T1, T3 to T5, T14).
#include "tests/core/hsdp/training.h"
#include "tests/core/hsdp/test_memory.h"

#include <cstring>

#include <gtest/gtest.h>

#include "core/hsdp/packer.h"
#include "tests/support/expect_failure.h"

namespace shardwright::test {
namespace {

TrainingCase sharded_over(int32_t world) {
  TrainingCase plan;
  plan.mesh.shard = world;
  return plan;
}

TrainingCase over_mesh(int32_t replicate, int32_t shard) {
  TrainingCase plan;
  plan.mesh.replicate = replicate;
  plan.mesh.shard = shard;
  return plan;
}

TEST(Training, T1ShardsHaveTheBitsOfOneProcess) {
  for (const int32_t world : {2, 3, 4}) {
    SCOPED_TRACE(world);
    expect_trains_like_one_process(sharded_over(world));
  }
}

TEST(Training, T1GradientsThatAreHandedOverGiveTheSameBits) {
  TrainingCase plan = sharded_over(3);
  plan.take_gradients = true;
  expect_trains_like_one_process(plan);
}

TEST(Training, T3ReplicasOfShardsHaveTheBitsOfTheSameTree) {
  for (const auto& [replicate, shard] :
       std::vector<std::pair<int32_t, int32_t>>{{2, 2}, {1, 4}, {4, 1}, {1, 1}}) {
    SCOPED_TRACE(testing::Message() << replicate << " x " << shard);
    expect_trains_like_one_process(over_mesh(replicate, shard));
  }
}

TEST(Training, T3ReplicasAloneHaveTheBitsOfReplicatedParameters) {
  TrainingCase replicated = over_mesh(1, 4);
  replicated.replicate_parameters = true;
  const std::vector<Parameters> by_axis = train(over_mesh(4, 1));
  const std::vector<Parameters> by_parameter = train(replicated);
  EXPECT_EQ(by_axis, by_parameter);
}

TEST(Training, T4FewRowsAndNoRowsHaveTheSameBits) {
  for (const std::vector<size_t>& widths :
       {std::vector<size_t>{5, 1, 3, 2}, {3, 9, 5, 13}, {2, 4, 1, 1}}) {
    TrainingCase plan = sharded_over(4);
    plan.widths = widths;
    SCOPED_TRACE(testing::PrintToString(widths));
    expect_trains_like_one_process(plan);
  }
}

// The shard behind and between the parts of this rank.
Status expect_padding_is_zero(RankTrainer& trainer, const TrainingCase& plan, int32_t rank) {
  for (size_t layer = 0; layer < plan.layers(); ++layer) {
    const std::vector<hsdp::ParameterSpec> specs = {trainer.units()[layer]->spec(0),
                                                    trainer.units()[layer]->spec(1)};
    SHW_ASSIGN_OR_RETURN(const hsdp::UnitLayout layout,
                         hsdp::UnitLayout::create(specs, plan.mesh.shard, hsdp::LayoutMode::kRow));
    SHW_ASSIGN_OR_RETURN(const hsdp::ParameterView first, trainer.units()[layer]->local(0));
    const float* shard = seen_floats(first.bytes) - layout.local_offset(0, rank);
    for (size_t each = 0; each < 2; ++each) {
      const hsdp::ParameterSlot& slot = layout.slot(each);
      SHW_ASSIGN_OR_RETURN(const hsdp::ParameterView local, trainer.units()[layer]->local(each));
      const int64_t held = static_cast<int64_t>(local.bytes.size() / sizeof(float));
      for (int64_t element = held; element < slot.shard_rows * slot.row_elements; ++element)
        EXPECT_EQ(shard[slot.offset_in_shard + element], 0.0F);
    }
  }
  return {};
}

TEST(Training, T4PaddingIsZeroAfterEachStep) {
  TrainingCase plan = sharded_over(4);
  plan.widths = {3, 9, 5, 3};
  RankMeshes meshes(plan.mesh);
  expect_all_ok(run_ranks(4, [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto trainer, RankTrainer::create(plan, rank, meshes.take(rank)));
    for (int32_t step = 0; step < 3; ++step) {
      SHW_RETURN_IF_ERROR(trainer->run_step(step));
      SHW_RETURN_IF_ERROR(expect_padding_is_zero(*trainer, plan, rank));
    }
    return {};
  }));
}

TEST(Training, T5OtherDimensionsAreShardedWhereTheyDivide) {
  for (const int32_t dim : {1, -1}) {
    TrainingCase plan = sharded_over(4);
    plan.widths = {12, 36, 28, 3};
    plan.weight_shard_dim = dim;
    SCOPED_TRACE(dim);
    expect_trains_like_one_process(plan);
  }
}

TEST(Training, T5AnUnevenOtherDimensionIsRefusedOnAllRanks) {
  TrainingCase plan = sharded_over(2);
  plan.weight_shard_dim = 1;  // 13 columns
  RankMeshes meshes(plan.mesh);
  const std::vector<Status> outcomes = run_ranks(2, [&](int32_t rank) -> Status {
    return RankTrainer::create(plan, rank, meshes.take(rank)).status();
  });
  for (const Status& each : outcomes)
    EXPECT_FAILURE(each, StatusCode::kInvalidArgument, "layer0.weight", "13", "2");
}

TEST(Training, T14FrozenParametersStayUntilTheyAreUnfrozen) {
  TrainingCase plan = sharded_over(3);
  plan.frozen = {false, true, true, true, false, false};  // a bias, and the whole second layer
  plan.unfreeze_step = 5;
  plan.steps = 10;
  expect_trains_like_one_process(plan);
}

TEST(Training, RaggedShardsHaveTheBitsOfOneProcess) {
  for (const int32_t world : {1, 2, 3, 4}) {
    TrainingCase plan = sharded_over(world);
    plan.unit.layout_mode = hsdp::LayoutMode::kRagged;
    SCOPED_TRACE(world);
    expect_trains_like_one_process(plan);
  }
}

}  // namespace
}  // namespace shardwright::test

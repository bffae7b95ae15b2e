// SPDX-License-Identifier: Apache-2.0
//
// What training holds in memory (T29); what it is foretold to hold is tested with the estimate.
#include <gtest/gtest.h>

#include "tests/core/hsdp/training.h"

namespace shardwright::test {
namespace {

struct Measured {
  hsdp::MemoryStats first;  // after three steps
  hsdp::MemoryStats last;
};

Measured measure(const TrainingCase& plan) {
  RankMeshes meshes(plan.mesh);
  Measured result;
  expect_all_ok(run_ranks(plan.mesh.world(), [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto trainer, RankTrainer::create(plan, rank, meshes.take(rank)));
    for (int32_t step = 0; step < plan.steps; ++step) {
      SHW_RETURN_IF_ERROR(trainer->run_step(step));
      if (rank == 0 && step == 2) result.first = trainer->context().stats().memory;
    }
    if (rank == 0) result.last = trainer->context().stats().memory;
    return {};
  }));
  return result;
}

TEST(TrainingMemory, T29DoesNotGrowIn200Steps) {
  TrainingCase plan;
  plan.mesh = {2, 2};
  plan.steps = 200;
  const Measured measured = measure(plan);
  EXPECT_EQ(measured.last.total.peak_bytes, measured.first.total.peak_bytes);
  EXPECT_EQ(measured.last.total.current_bytes, measured.first.total.current_bytes);
  EXPECT_EQ(measured.last.total.current_count, measured.first.total.current_count);
}

TEST(TrainingMemory, T29ReplicasCostOneSumMoreAtMost) {
  TrainingCase plan;
  plan.mesh = {1, 2};
  plan.steps = 5;
  const uint64_t alone = measure(plan).last.total.peak_bytes;
  plan.mesh = {2, 2};
  const uint64_t with_replicas = measure(plan).last.total.peak_bytes;
  // The largest unit: 29 x 37 weights in 15 rows of each rank, and a bias.
  const uint64_t largest_sum = (15 * 37 + 15) * sizeof(float);
  EXPECT_LE(with_replicas, alone + largest_sum);
}

TEST(TrainingMemory, BetweenStepsOnlyShardsAreHeld) {
  TrainingCase plan;
  plan.mesh = {2, 2};
  plan.steps = 3;
  const hsdp::MemoryStats stats = measure(plan).last;
  EXPECT_EQ(stats.total.current_bytes, stats.of(hsdp::BufferKind::kShard).current_bytes);
}

}  // namespace
}  // namespace shardwright::test

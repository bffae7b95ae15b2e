// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are threads on one device whose lanes come late to what they do, each time by another
// measure (T33): nothing is read before it is there, and no memory goes back before it was used.
#include <atomic>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "tests/core/hsdp/test_memory.h"
#include "tests/core/hsdp/training.h"
#include "tests/support/random_source.h"
#include "tests/support/wrapped_device.h"

namespace shardwright::test {
namespace {

constexpr uint64_t kMostTurns = 4;  // that others get before a lane goes on

class LateDevice final : public WrappedDevice {
 public:
  LateDevice(std::shared_ptr<device::LaneDevice> inner, uint64_t number)
      : WrappedDevice(std::move(inner)), random_(number) {}

  Status copy(device::Lane& lane, device::CopyKind kind, std::span<const std::byte> source,
              std::span<std::byte> target) override {
    SHW_RETURN_IF_ERROR(come_late(lane));
    return WrappedDevice::copy(lane, kind, source, target);
  }
  Status copy_elements(device::Lane& lane, const device::ElementCopy& copy) override {
    SHW_RETURN_IF_ERROR(come_late(lane));
    return WrappedDevice::copy_elements(lane, copy);
  }
  Status fill_zero(device::Lane& lane, std::span<std::byte> target) override {
    SHW_RETURN_IF_ERROR(come_late(lane));
    return WrappedDevice::fill_zero(lane, target);
  }

 private:
  Status come_late(device::Lane& lane) {
    return lane.submit([turns = random_() % kMostTurns] {
      for (uint64_t turn = 0; turn < turns; ++turn) std::this_thread::yield();
      return Status();
    });
  }

  std::mt19937_64 random_;  // of one rank, whose calls wait for each other
};

class LateLanes : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = missing_device(); !missing.empty()) GTEST_SKIP() << missing;
    number_ = random_.next();
  }
  void expect_same_bits(TrainingCase plan) {
    plan.steps = 3;
    plan.wrap_device = [this](std::shared_ptr<device::LaneDevice> inner) {
      return std::make_shared<LateDevice>(std::move(inner), number_++);
    };
    expect_trains_like_one_process(plan);
  }

  RandomSource random_;
  std::atomic<uint64_t> number_ = 0;  // of the next device
};

TEST_F(LateLanes, T33ShardsAndReplicas) {
  for (const auto& [replicate, shard] : std::vector<std::pair<int32_t, int32_t>>{{1, 3}, {2, 2}}) {
    for (const DType narrow : {DType::kInvalid, DType::kBfloat16}) {
      TrainingCase plan;
      plan.mesh.replicate = replicate;
      plan.mesh.shard = shard;
      plan.unit.parameter_dtype = narrow;
      plan.unit.reduce_dtype = DType::kFloat32;
      SCOPED_TRACE(testing::Message() << replicate << " x " << shard << " " << dtype_name(narrow));
      expect_same_bits(plan);
    }
  }
}

TEST_F(LateLanes, T33Offload) {
  for (const DType narrow : {DType::kInvalid, DType::kBfloat16}) {
    TrainingCase plan;
    plan.mesh.replicate = 2;
    plan.mesh.shard = 2;
    plan.unit.offload = true;
    plan.unit.parameter_dtype = narrow;
    plan.unit.reduce_dtype = DType::kFloat32;
    plan.micro_batches = 2;
    plan.accumulation = Accumulation::kScatterEach;
    expect_same_bits(plan);
  }
}

TEST_F(LateLanes, T33GradientsThatLieThere) {
  TrainingCase plan;
  plan.mesh.shard = 2;
  plan.take_gradients = true;
  plan.gradients_on_device = true;
  plan.settings.operation = hsdp::GradientOperation::kSum;
  expect_same_bits(plan);
}

}  // namespace
}  // namespace shardwright::test

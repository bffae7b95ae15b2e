// SPDX-License-Identifier: Apache-2.0
//
// What only memory apart from the host's has: transports that reach nothing else, tensors that lie
// there already, and failures of a lane. Every address faults when the host touches it.
#include <atomic>
#include <cmath>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "core/device/memory_work.h"
#include "core/tensor/ordered_add.h"
#include "tests/core/hsdp/test_memory.h"
#include "tests/core/hsdp/training.h"
#include "tests/support/apart_device.h"
#include "tests/support/expect_failure.h"
#include "tests/support/wrapped_device.h"

namespace shardwright::test {
namespace {

TEST(Apart, TheHostCannotTouchItsMemory) {
  const auto device = make_apart_device(true);
  const auto memory = device->allocate(64).value();
  EXPECT_DEATH(std::memset(memory.data(), 0, 1), "");
  device->release(memory);
}

TEST(Apart, TransportsThatReachOnlyTheDeviceGiveTheSameBits) {
  for (const auto& [replicate, shard] :
       std::vector<std::pair<int32_t, int32_t>>{{1, 3}, {2, 2}, {4, 1}}) {
    TrainingCase plan;
    plan.mesh.replicate = replicate;
    plan.mesh.shard = shard;
    plan.mesh.wrap = [](collective::CommunicatorPtr inner, int32_t, int32_t) {
      return make_apart_communicator(std::move(inner));
    };
    plan.unit.parameter_dtype = DType::kBfloat16;
    plan.unit.reduce_dtype = DType::kFloat32;
    SCOPED_TRACE(testing::Message() << replicate << " x " << shard);
    expect_trains_like_one_process(plan);
  }
}

TEST(Apart, GradientsThatLieThereAreTakenOrCopied) {
  for (const bool take : {false, true}) {
    TrainingCase plan;
    plan.mesh.shard = 2;
    plan.take_gradients = take;
    plan.gradients_on_device = true;
    plan.micro_batches = 2;
    plan.accumulation = Accumulation::kReduceAtTheEnd;
    plan.settings.operation = hsdp::GradientOperation::kSum;
    SCOPED_TRACE(take);
    expect_trains_like_one_process(plan);
  }
}

// As the host's functions have it, for sizes beyond what is summed at a time.
TEST(Apart, SumsOfNarrowDtypesAreThoseOfTheHost) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    const size_t width = static_cast<size_t>(dtype_bits(dtype)) / 8;
    const size_t elements = (size_t{1} << 20) + 77;
    const size_t bytes = elements * width;
    const auto host = device::make_memory_work(device::make_host_lane_device(true)).value();
    std::vector<std::byte> parts(3 * bytes);
    const Floats values = mlp_values(7, 3 * elements);
    ASSERT_TRUE(host->cast(DType::kFloat32, std::as_bytes(std::span(values)), dtype, parts).ok());
    std::vector<std::byte> expected(bytes);
    ASSERT_TRUE(add_in_order(dtype, parts, 3, 1.0, expected).ok());
    ASSERT_TRUE(host->add_cast(DType::kFloat32,
                               std::as_bytes(std::span(values)).first(elements * 4), dtype,
                               expected)
                    .ok());

    const auto device = make_apart_device(false);
    const auto work = device::make_memory_work(device).value();
    const auto there = device->allocate(3 * bytes).value();
    const auto more = device->allocate(elements * 4).value();
    const auto sum = device->allocate(bytes).value();
    std::vector<std::byte> found(bytes);
    ASSERT_TRUE(work->upload(parts, there).ok());
    ASSERT_TRUE(work->upload(std::as_bytes(std::span(values)).first(elements * 4), more).ok());
    ASSERT_TRUE(work->add_in_order(dtype, there, 3, sum).ok());
    ASSERT_TRUE(work->add_cast(DType::kFloat32, more, dtype, sum).ok());
    ASSERT_TRUE(work->download(sum, found).ok());
    ASSERT_TRUE(work->finish().ok());
    EXPECT_EQ(found, expected) << dtype_name(dtype);
    for (const auto memory : {there, more, sum}) device->release(memory);
  }
}

TEST(Apart, NormsAndFactorsAreThoseOfTheHost) {
  const MeshShape shape{.shard = 2};
  RankMeshes meshes(shape);
  expect_all_ok(run_ranks(2, [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(
        const auto context,
        hsdp::Hsdp::create(options_of(shape), meshes.take(rank), make_test_device(false)));
    SHW_ASSIGN_OR_RETURN(hsdp::Unit * unit, context->create_unit("layer", {}));
    std::vector<hsdp::ParameterInput> inputs(1);
    inputs[0].spec.fqn = "weight";
    inputs[0].spec.shape = {2, 2};
    SHW_RETURN_IF_ERROR(unit->add_parameters(std::move(inputs)));
    SHW_RETURN_IF_ERROR(unit->seal());
    SHW_RETURN_IF_ERROR(unit->pre_forward({}));
    SHW_RETURN_IF_ERROR(unit->post_forward({}));
    SHW_RETURN_IF_ERROR(unit->pre_backward());
    const Floats gradient = {1, 2, 2, 4};
    const std::vector<hsdp::GradientInput> given = {
        {0, DType::kFloat32, std::as_bytes(std::span(gradient)), true}};
    SHW_RETURN_IF_ERROR(unit->add_gradients(given));
    SHW_RETURN_IF_ERROR(unit->post_backward());
    SHW_RETURN_IF_ERROR(context->finalize_backward());
    SHW_ASSIGN_OR_RETURN(const double norm, context->global_norm(2.0));
    EXPECT_EQ(norm, 5.0);
    SHW_RETURN_IF_ERROR(context->scale_gradients(0.5));
    SHW_ASSIGN_OR_RETURN(const double half, context->global_norm(INFINITY));
    EXPECT_EQ(half, 2.0);
    return {};
  }));
}

// Copies between the device and the host fail from some number on.
class LooseWire final : public WrappedDevice {
 public:
  LooseWire(std::shared_ptr<device::LaneDevice> inner, std::shared_ptr<std::atomic<int64_t>> left)
      : WrappedDevice(std::move(inner)), left_(std::move(left)) {}
  Status copy(device::Lane& lane, device::CopyKind kind, std::span<const std::byte> source,
              std::span<std::byte> target) override {
    if (kind == device::CopyKind::kDeviceToDevice || --*left_ > 0)
      return WrappedDevice::copy(lane, kind, source, target);
    return lane.submit([] { return unavailable("a wire is loose"); });
  }

 private:
  std::shared_ptr<std::atomic<int64_t>> left_;  // co-owned with the test
};

TEST(Apart, ACopyThatFailsEndsTheContextUntilItIsReset) {
  TrainingCase plan;
  plan.mesh.shard = 1;
  plan.unit.offload = true;
  const auto left = std::make_shared<std::atomic<int64_t>>(1'000'000);
  plan.wrap_device = [left](std::shared_ptr<device::LaneDevice> inner) {
    return std::make_shared<LooseWire>(std::move(inner), left);
  };
  RankMeshes meshes(plan.mesh);
  const auto trainer = RankTrainer::create(plan, 0, meshes.take(0)).value();
  Parameters whole = trainer->whole_parameters().value();
  for (int64_t good = 1; good < 12; ++good) {
    *left = good;
    const Status outcome = trainer->run_step(0);
    *left = 1'000'000;
    EXPECT_FAILURE(outcome, StatusCode::kUnavailable, "a wire is loose");
    EXPECT_FAILURE(trainer->run_step(0), StatusCode::kFailedPrecondition, "must be reset");
    ASSERT_TRUE(trainer->context().reset().ok());
    EXPECT_EQ(trainer->whole_parameters().value(), whole) << good;
  }
}

// The device has no pinned memory left.
class WithoutPinned final : public WrappedDevice {
 public:
  using WrappedDevice::WrappedDevice;
  Result<std::span<std::byte>> allocate_pinned(uint64_t bytes) override {
    return resource_exhausted("memory", "no pinned memory for " + std::to_string(bytes));
  }
};

TEST(Apart, ShardsWithoutPinnedMemoryAreRefused) {
  TrainingCase plan;
  plan.mesh.shard = 1;
  plan.unit.offload = true;
  plan.wrap_device = [](std::shared_ptr<device::LaneDevice> inner) {
    return std::make_shared<WithoutPinned>(std::move(inner));
  };
  RankMeshes meshes(plan.mesh);
  EXPECT_FAILURE(RankTrainer::create(plan, 0, meshes.take(0)).status(),
                 StatusCode::kResourceExhausted, "no pinned memory");
}

TEST(Apart, DtypesThatTheDeviceDoesNotCastAreRefusedByName) {
  const MeshShape shape{.shard = 1};
  RankMeshes meshes(shape);
  const auto context =
      hsdp::Hsdp::create(options_of(shape), meshes.take(0), make_test_device(true)).value();
  hsdp::UnitOptions options;
  options.parameter_dtype = DType::kFloat8E5m2;
  hsdp::Unit* const unit = context->create_unit("layer", options).value();
  std::vector<hsdp::ParameterInput> inputs(1);
  inputs[0].spec.fqn = "weight";
  inputs[0].spec.shape = {2, 2};
  inputs[0].spec.dtype = DType::kFloat64;
  ASSERT_TRUE(unit->add_parameters(std::move(inputs)).ok());
  EXPECT_FAILURE(unit->seal(), StatusCode::kUnimplemented, "layer", "float64", "float8_e5m2",
                 "apart");
}

}  // namespace
}  // namespace shardwright::test

// SPDX-License-Identifier: Apache-2.0
//
// A GPU before the conformance suite, where there is one.
#include "core/base/cuda/cuda_calls.h"
#include "core/device/cuda/cuda_device.h"
#include "tests/conformance/device/lane_device_suite.h"

namespace shardwright::device {
namespace {

std::string missing_gpu() {
  const Status there = cuda::check_device(0);
  return there.ok() ? std::string() : "there is no GPU: " + std::string(there.message());
}

INSTANTIATE_TEST_SUITE_P(Cuda, LaneDeviceConformance,
                         testing::Values(LaneDeviceMaker{
                             "streams", true, [] { return make_cuda_lane_device(0).value(); },
                             missing_gpu}),
                         [](const auto& each) { return each.param.name; });

TEST(CudaLaneDevice, IsNotTheHost) {
  if (!missing_gpu().empty()) GTEST_SKIP() << missing_gpu();
  const auto device = make_cuda_lane_device(0).value();
  EXPECT_EQ(device->name(), "cuda");
  EXPECT_FALSE(device->is_host());
}

TEST(CudaLaneDevice, IsRefusedByItsNumber) {
  const Status refused = make_cuda_lane_device(1000).status();
  EXPECT_EQ(refused.code(),
            missing_gpu().empty() ? StatusCode::kInvalidArgument : StatusCode::kUnavailable)
      << refused.to_string();
}

}  // namespace
}  // namespace shardwright::device

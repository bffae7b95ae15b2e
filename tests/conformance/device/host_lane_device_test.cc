// SPDX-License-Identifier: Apache-2.0
//
// The host's lanes before the conformance suite, and what only they promise.
#include "tests/conformance/device/lane_device_suite.h"

namespace shardwright::device {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Host, LaneDeviceConformance,
    testing::Values(LaneDeviceMaker{"threads", true, [] { return make_host_lane_device(false); }},
                    LaneDeviceMaker{"inline", false, [] { return make_host_lane_device(true); }}),
    [](const auto& each) { return each.param.name; });

TEST(HostLaneDevice, IsTheHost) {
  for (const bool inline_lanes : {false, true}) {
    const auto device = make_host_lane_device(inline_lanes);
    EXPECT_EQ(device->name(), "host");
    EXPECT_TRUE(device->is_host());
    EXPECT_EQ(device->current_stream(), 0U);
  }
}

TEST(HostLaneDevice, InlineLanesRunWhereTheyAreCalled) {
  const LanePtr lane = make_host_lane_device(true)->make_lane(0).value();
  bool has_run = false;
  ASSERT_TRUE(lane->submit([&has_run] {
                    has_run = true;
                    return Status();
                  })
                  .ok());
  EXPECT_TRUE(has_run);
}

TEST(HostLaneDevice, ATaskDoesNotWaitForItsOwnLane) {
  const LanePtr lane = make_host_lane_device(false)->make_lane(0).value();
  ASSERT_TRUE(lane->submit([&lane] { return lane->synchronize(); }).ok());
  EXPECT_EQ(lane->synchronize().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace shardwright::device

// SPDX-License-Identifier: Apache-2.0
//
// A device that comes as a table of C functions before the conformance suite.
#include "capi/boundary/communicator_argument.h"
#include "shardwright/shardwright.h"
#include "tests/conformance/device/lane_device_suite.h"
#include "tests/conformance/device/thread_device.h"

namespace shardwright::device {
namespace {

std::shared_ptr<LaneDevice> make_table_device(bool pinned) {
  shw_device_vtable vtable;
  fill_thread_device(&vtable, pinned ? 1 : 0, nullptr);
  shw_device* handle = nullptr;
  EXPECT_EQ(shw_device_create(&vtable, &handle, nullptr), SHW_OK);
  std::shared_ptr<LaneDevice> device = capi::read_device(handle).value();
  shw_device_release(handle);
  return device;
}

INSTANTIATE_TEST_SUITE_P(
    Table, LaneDeviceConformance,
    testing::Values(LaneDeviceMaker{"pinned", true, [] { return make_table_device(true); }},
                    LaneDeviceMaker{"plain", true, [] { return make_table_device(false); }}),
    [](const auto& each) { return each.param.name; });

TEST(TableLaneDevice, GoesOnceAfterItsLanesAndEvents) {
  int released = 0;
  shw_device_vtable vtable;
  fill_thread_device(&vtable, 1, &released);
  shw_device* handle = nullptr;
  ASSERT_EQ(shw_device_create(&vtable, &handle, nullptr), SHW_OK);
  std::shared_ptr<LaneDevice> device = capi::read_device(handle).value();
  shw_device_release(handle);
  LanePtr lane = device->make_lane(0).value();
  EventPtr event = device->make_event().value();
  device = nullptr;
  EXPECT_TRUE(lane->record(*event).ok());
  lane = nullptr;
  EXPECT_EQ(released, 0);
  EXPECT_TRUE(event->has_passed());
  event = nullptr;
  EXPECT_EQ(released, 1);
}

}  // namespace
}  // namespace shardwright::device

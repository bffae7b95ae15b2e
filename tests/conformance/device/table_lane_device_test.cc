// SPDX-License-Identifier: Apache-2.0
//
// A device that comes as a table of C functions before the conformance suite.
#include "capi/boundary/communicator_argument.h"
#include "plugins/tables/device_table.h"
#include "shardwright/shardwright.h"
#include "tests/conformance/device/lane_device_suite.h"
#include "tests/conformance/device/thread_device.h"
#include "tests/support/plugin_host.h"

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

// A device of the core on its way through the table that a plugin would offer of it.
std::shared_ptr<LaneDevice> make_core_device() {
  test::be_the_host_of_plugins();
  shw_device_vtable vtable = plugin_tables::device_functions("core");
  plugin_tables::fill_table(make_host_lane_device(false), &vtable);
  shw_device* handle = nullptr;
  EXPECT_EQ(shw_device_create(&vtable, &handle, nullptr), SHW_OK);
  std::shared_ptr<LaneDevice> device = capi::read_device(handle).value();
  shw_device_release(handle);
  return device;
}

INSTANTIATE_TEST_SUITE_P(
    Table, LaneDeviceConformance,
    testing::Values(LaneDeviceMaker{"pinned", true, [] { return make_table_device(true); }},
                    LaneDeviceMaker{"plain", true, [] { return make_table_device(false); }},
                    LaneDeviceMaker{"core", true, make_core_device}),
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

// Without the two slots of a table the library does it, but only in memory of the host.
TEST(TableLaneDevice, ConvertsElementsWhereItsMemoryIsTheHosts) {
  shw_device_vtable vtable;
  fill_thread_device(&vtable, 1, nullptr);
  vtable.flags = 0;
  shw_device* handle = nullptr;
  ASSERT_EQ(shw_device_create(&vtable, &handle, nullptr), SHW_OK);
  std::shared_ptr<LaneDevice> device = capi::read_device(handle).value();
  shw_device_release(handle);
  const LanePtr lane = device->make_lane(0).value();
  std::vector<std::byte> memory(64);
  const Status refused = device->copy_elements(
      *lane, {.source = memory.data(), .target = memory.data() + 32, .columns = 4});
  EXPECT_EQ(refused.code(), StatusCode::kUnimplemented);
  EXPECT_NE(refused.message().find("has no copy_elements"), std::string_view::npos);
  EXPECT_EQ(device->fill_zero(*lane, memory).code(), StatusCode::kUnimplemented);
}

TEST(TableLaneDevice, TakesBothSlotsForElementsOrNone) {
  shw_device_vtable vtable;
  fill_thread_device(&vtable, 1, nullptr);
  vtable.fill_zero = plugin_tables::device_functions("").fill_zero;
  shw_device* handle = nullptr;
  EXPECT_EQ(shw_device_create(&vtable, &handle, nullptr), SHW_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace shardwright::device

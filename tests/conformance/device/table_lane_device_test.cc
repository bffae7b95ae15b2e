// SPDX-License-Identifier: Apache-2.0
//
// A device that comes as a table of C functions before the conformance suite.
#include "capi/boundary/communicator_argument.h"
#include "plugins/tables/device_table.h"
#include "shardwright/shardwright.h"
#include "tests/conformance/device/apart_table.h"
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

std::shared_ptr<LaneDevice> make_apart_table() {
  shw_device_vtable vtable;
  fill_apart_table(&vtable, nullptr);
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
                    LaneDeviceMaker{"apart", true, make_apart_table},
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

// Memory of the host is of a kind that the host can touch, other memory is not.
TEST(TableLaneDevice, SaysWhereItsMemoryLies) {
  struct Case {
    uint32_t flags;
    int32_t type;
    int32_t id;
    int32_t found;  // -1 = refused
  };
  for (const Case& each :
       {Case{SHW_DEVICE_IS_HOST, 0, 0, SHW_DEVICE_CPU},
        Case{SHW_DEVICE_IS_HOST, SHW_DEVICE_CUDA_HOST, 0, SHW_DEVICE_CUDA_HOST},
        Case{SHW_DEVICE_IS_HOST, SHW_DEVICE_CUDA, 0, -1}, Case{0, 0, 2, SHW_DEVICE_EXTENSION},
        Case{0, SHW_DEVICE_CUDA, 3, SHW_DEVICE_CUDA}, Case{0, SHW_DEVICE_CPU, 0, -1},
        Case{0, 5, 0, -1}, Case{0, SHW_DEVICE_CUDA, -1, -1}}) {
    SCOPED_TRACE(testing::Message() << each.flags << " " << each.type << " " << each.id);
    shw_device_vtable vtable;
    fill_apart_table(&vtable, nullptr);
    vtable.flags = each.flags;
    vtable.device_type = each.type;
    vtable.device_id = each.id;
    shw_device* handle = nullptr;
    const shw_status code = shw_device_create(&vtable, &handle, nullptr);
    EXPECT_EQ(code, each.found == -1 ? SHW_INVALID_ARGUMENT : SHW_OK);
    EXPECT_EQ(shw_device_type(handle), each.found == -1 ? 0 : each.found);
    EXPECT_EQ(shw_device_id(handle), each.found == -1 ? 0 : each.id);
    shw_device_release(handle);
  }
}

// A table of before there were numbers.
TEST(TableLaneDevice, OlderTablesHaveNoNumber) {
  shw_device_vtable vtable;
  fill_thread_device(&vtable, 1, nullptr);
  vtable.struct_size = SHW_DEVICE_VTABLE_SIZE_V1;
  vtable.device_type = SHW_DEVICE_CUDA;  // not of the table
  shw_device* handle = nullptr;
  ASSERT_EQ(shw_device_create(&vtable, &handle, nullptr), SHW_OK);
  EXPECT_EQ(shw_device_type(handle), SHW_DEVICE_CPU);
  shw_device_release(handle);
  plugin_tables::fill_table(make_host_lane_device(true), &vtable);
  EXPECT_EQ(vtable.device_type, SHW_DEVICE_CUDA);
  plugin_tables::device_functions("").release(vtable.user);
  vtable.struct_size = sizeof(vtable);
  plugin_tables::fill_table(make_host_lane_device(true), &vtable);
  EXPECT_EQ(vtable.device_type, SHW_DEVICE_CPU);
  plugin_tables::device_functions("").release(vtable.user);
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

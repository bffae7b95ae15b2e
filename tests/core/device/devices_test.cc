// SPDX-License-Identifier: Apache-2.0
#include "core/device/devices.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/support/guarded_device.h"

namespace shardwright::device {
namespace {

using test::GuardedDevice;

TensorView on(DeviceType type, int32_t id, std::vector<std::byte>* memory) {
  TensorView view;
  view.data = memory->data();
  view.dtype = DType::kUint8;
  view.shape = Dims{static_cast<int64_t>(memory->size())};
  view.device_type = static_cast<int32_t>(type);
  view.device_id = id;
  return view;
}

std::unique_ptr<Devices> with_guarded() {
  Result<std::unique_ptr<Devices>> devices =
      Devices::create({{GuardedDevice::kType, std::make_shared<GuardedDevice>(4096)}});
  EXPECT_TRUE(devices.ok()) << devices.status().to_string();
  return std::move(*devices);
}

TEST(Devices, HostMemoryIsAlwaysThere) {
  const std::unique_ptr<Devices> devices = *Devices::create({});
  for (const DeviceType type : {DeviceType::kCpu, DeviceType::kCudaHost, DeviceType::kRocmHost})
    EXPECT_EQ(devices->find(static_cast<int32_t>(type)), &devices->host());
  EXPECT_EQ(devices->find(static_cast<int32_t>(DeviceType::kCuda)), nullptr);
  for (const int32_t type : {-1, 0, 19, 31, 32, 1 << 30}) EXPECT_EQ(devices->find(type), nullptr);
}

TEST(Devices, OneThatIsMissingIsNamedWithTheTensorAndWhatToDo) {
  const std::unique_ptr<Devices> devices = *Devices::create({});
  std::vector<std::byte> memory(4);
  const TensorView view = on(DeviceType::kCuda, 1, &memory);
  const Status reading = devices->check_readable(view, "layer.0");
  EXPECT_EQ(reading.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(reading.message(),
            "tensor layer.0 lies on cuda:1, which nothing in this build can reach; copy it to host "
            "memory and give the copy");
  EXPECT_EQ(reading.detail("tensor"), "layer.0");
  const Status writing = devices->check_writable(view, "layer.0");
  EXPECT_EQ(writing.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(writing.message(),
            "tensor layer.0 lies on cuda:1, which nothing in this build can reach; load into host "
            "memory and copy it from there");
  EXPECT_EQ(devices->place(view, {}).status().code(), StatusCode::kUnimplemented);
}

TEST(Devices, ReadOnlyMemoryIsNotWritten) {
  const std::unique_ptr<Devices> devices = *Devices::create({});
  std::vector<std::byte> memory(4);
  TensorView view = on(DeviceType::kCpu, 0, &memory);
  view.read_only = true;
  EXPECT_TRUE(devices->check_readable(view, "w").ok());
  EXPECT_EQ(devices->check_writable(view, "w").code(), StatusCode::kInvalidArgument);
}

TEST(Devices, AWindowKnowsItsDeviceAndStream) {
  const std::unique_ptr<Devices> devices = with_guarded();
  std::vector<std::byte> memory(4);
  TensorView view = on(DeviceType::kCpu, 3, &memory);
  view.device_type = GuardedDevice::kType;
  view.stream = 9;
  const Result<DeviceWindow> window = devices->place(view, {});
  ASSERT_TRUE(window.ok()) << window.status().to_string();
  EXPECT_EQ(window->device->name(), "guarded");
  EXPECT_EQ(window->device_id, 3);
  EXPECT_EQ(window->stream, 9U);
}

TEST(Devices, TwoForOneKindOfMemoryAreRefused) {
  const auto device = std::make_shared<GuardedDevice>(4096);
  EXPECT_EQ(Devices::create({{1, device}}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Devices::create({{2, device}, {2, device}}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Devices::create({{99, device}}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Devices::create({{-1, device}}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Devices::create({{2, nullptr}}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(Devices::create({{2, device}, {8, device}}).ok());
}

TEST(Devices, NamesAreThoseOfTheirNumbers) {
  EXPECT_EQ(device_text(1, 0), "cpu");
  EXPECT_EQ(device_text(3, 0), "cuda_host");
  EXPECT_EQ(device_text(2, 1), "cuda:1");
  EXPECT_EQ(device_text(18, 0), "trainium:0");
  EXPECT_EQ(device_text(5, 0), "device type 5");
  EXPECT_EQ(device_text(-7, 0), "device type -7");
  EXPECT_EQ(device_text(1000, 0), "device type 1000");
}

}  // namespace
}  // namespace shardwright::device

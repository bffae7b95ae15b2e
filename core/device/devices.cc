// SPDX-License-Identifier: Apache-2.0
#include "core/device/devices.h"

#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/device/host/host_device.h"
#include "core/device/reached_device.h"
#include "core/tensor/tensor_view.h"

namespace shardwright::device {
namespace {

// Indexed by the numbers of DLPack; "" where there is none.
constexpr std::string_view kNames[] = {"",       "cpu",       "cuda",      "cuda_host",    "opencl",
                                       "",       "",          "vulkan",    "metal",        "vpi",
                                       "rocm",   "rocm_host", "extension", "cuda_managed", "oneapi",
                                       "webgpu", "hexagon",   "maia",      "trainium"};

std::string_view name_of(int32_t type) {
  return type < 0 || static_cast<size_t>(type) >= std::size(kNames) ? std::string_view()
                                                                    : kNames[type];
}

Status not_here(const TensorSpan& tensor, std::string_view name, std::string_view advice) {
  return unimplemented(
             fmt::format("tensor {} lies on {}, which nothing in this build can reach; {}",
                         escape_text(name), device_text(tensor.device_type, tensor.device_id),
                         advice))
      .with_detail("tensor", name)
      .with_detail("plugin", "device");
}

}  // namespace

std::string device_text(int32_t type, int32_t id) {
  const std::string_view name = name_of(type);
  if (name.empty()) return fmt::format("device type {}", type);
  return device_is_host_accessible(type) ? std::string(name) : fmt::format("{}:{}", name, id);
}

Status with_tensor(Status status, std::string_view doing, std::string_view name) {
  if (status.ok()) return status;
  return std::move(status)
      .annotated(fmt::format("{} tensor {}", doing, escape_text(name)))
      .with_detail("tensor", name);
}

Devices::Devices() : host_(make_host_device()), reached_(make_reached_device()) {
  for (size_t type = 0; type < kTypes; ++type) {
    if (device_is_host_accessible(static_cast<int32_t>(type))) by_type_[type] = host_.get();
  }
}

Result<std::unique_ptr<Devices>> Devices::create(std::vector<DeviceEntry> others) {
  std::unique_ptr<Devices> devices(new Devices());
  for (DeviceEntry& entry : others) {
    if (name_of(entry.type).empty() || entry.device == nullptr) {
      return invalid_argument(fmt::format("there is no device of type {}", entry.type));
    }
    Device*& place = devices->by_type_[static_cast<size_t>(entry.type)];
    if (place != nullptr) {
      return invalid_argument(
          fmt::format("there are two devices for {}", device_text(entry.type, 0)));
    }
    place = entry.device.get();
    devices->others_.push_back(std::move(entry.device));
  }
  return devices;
}

Device* Devices::find(int32_t type) const {
  return type < 0 || static_cast<size_t>(type) >= kTypes ? nullptr
                                                         : by_type_[static_cast<size_t>(type)];
}

Device* Devices::find(const TensorSpan& tensor, const WindowAccess* access) const {
  return access != nullptr ? reached_.get() : find(tensor.device_type);
}

Status Devices::check_readable(const TensorSpan& tensor, std::string_view name,
                               const WindowAccess* access) const {
  if (find(tensor, access) != nullptr) return {};
  return not_here(tensor, name, "copy it to host memory and give the copy");
}

Status Devices::check_writable(const TensorSpan& tensor, std::string_view name,
                               const WindowAccess* access) const {
  if (find(tensor, access) == nullptr)
    return not_here(tensor, name, "load into host memory and copy it from there");
  if (!tensor.read_only) return {};
  return invalid_argument(fmt::format("the memory for tensor {} is read-only", escape_text(name)))
      .with_detail("tensor", name);
}

Result<DeviceWindow> Devices::place(const TensorSpan& tensor, StridedWindow elements,
                                    WindowAccess* access) const {
  Device* const device = find(tensor, access);
  if (device == nullptr) {
    return unimplemented(fmt::format("nothing in this build can reach {}",
                                     device_text(tensor.device_type, tensor.device_id)));
  }
  return DeviceWindow{device, std::move(elements), tensor.device_id, tensor.stream, access};
}

Result<DeviceWindow> Devices::whole_window(const TensorSpan& tensor, WindowAccess* access) const {
  const Dims origin(tensor.shape.size(), 0);
  SHW_ASSIGN_OR_RETURN(StridedWindow elements, window_of(tensor, origin, tensor.shape));
  return place(tensor, std::move(elements), access);
}

Result<DeviceWindow> Devices::piece_window(const State& state, size_t tensor, size_t piece) const {
  SHW_ASSIGN_OR_RETURN(StridedWindow elements, state.piece_window(tensor, piece));
  const TensorSpan local = state.tensors()[tensor].local;
  return place(local, std::move(elements), state.access_to(local));
}

}  // namespace shardwright::device

// SPDX-License-Identifier: Apache-2.0
//
// Where units of these tests have their memory: with the device of the program, which is one of
// host_memory.cc, apart_memory.cc, cuda_memory.cc and gpu_memory.cc. The same tests run over each.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/device/lane_device.h"
#include "core/hsdp/unit.h"

namespace shardwright::test {

std::shared_ptr<device::LaneDevice> make_test_device(bool inline_lanes);
// Why there is none; empty where there is.
std::string missing_device();
// Where the host may read and write what lies at these addresses of such a device.
std::span<std::byte> seen(std::span<std::byte> memory);
// What was written where it is seen is there for the device from now on.
void written(std::span<std::byte> memory);

inline float* seen_floats(std::span<std::byte> memory) {
  return reinterpret_cast<float*>(seen(memory).data());
}

// The same of memory that says where it lies.
inline bool lies_with_host(const hsdp::ParameterView& view) {
  return view.place.type == device::DeviceNumber().type;
}
inline std::span<std::byte> seen(const hsdp::ParameterView& view) {
  return lies_with_host(view) ? view.bytes : seen(view.bytes);
}
inline void written(const hsdp::ParameterView& view) {
  if (!lies_with_host(view)) written(view.bytes);
}

}  // namespace shardwright::test

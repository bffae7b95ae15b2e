// SPDX-License-Identifier: Apache-2.0
//
// Where units of these tests have their memory: with the device of the program, which is one of
// host_memory.cc, apart_memory.cc and cuda_memory.cc. The same tests run over each.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/device/lane_device.h"

namespace shardwright::test {

std::shared_ptr<device::LaneDevice> make_test_device(bool inline_lanes);
// Where the host may read and write what lies at these addresses of such a device.
std::span<std::byte> seen(std::span<std::byte> memory);

inline float* seen_floats(std::span<std::byte> memory) {
  return reinterpret_cast<float*>(seen(memory).data());
}

}  // namespace shardwright::test

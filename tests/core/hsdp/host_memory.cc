// SPDX-License-Identifier: Apache-2.0
//
// What make_test_device and seen are in memory of the host.
#include "tests/core/hsdp/test_memory.h"

namespace shardwright::test {

std::shared_ptr<device::LaneDevice> make_test_device(bool inline_lanes) {
  return device::make_host_lane_device(inline_lanes);
}

std::span<std::byte> seen(std::span<std::byte> memory) {
  return memory;
}

std::string missing_device() {
  return {};
}

void written(std::span<std::byte>) {}

}  // namespace shardwright::test

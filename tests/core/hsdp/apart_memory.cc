// SPDX-License-Identifier: Apache-2.0
//
// What make_test_device and seen are where memory of the device faults under the host's hands.
#include "tests/core/hsdp/test_memory.h"
#include "tests/support/apart_device.h"

namespace shardwright::test {

std::shared_ptr<device::LaneDevice> make_test_device(bool inline_lanes) {
  return make_apart_device(inline_lanes);
}

std::span<std::byte> seen(std::span<std::byte> memory) {
  return behind(memory);
}

std::string missing_device() {
  return {};
}

void written(std::span<std::byte>) {}

}  // namespace shardwright::test

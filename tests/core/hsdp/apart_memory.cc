// SPDX-License-Identifier: Apache-2.0
#include "tests/core/hsdp/test_memory.h"
#include "tests/support/apart_device.h"

namespace shardwright::test {

std::shared_ptr<device::LaneDevice> make_test_device(bool inline_lanes) {
  return make_apart_device(inline_lanes);
}

std::span<std::byte> seen(std::span<std::byte> memory) {
  return behind(memory);
}

}  // namespace shardwright::test

// SPDX-License-Identifier: Apache-2.0
//
// A lane device whose memory the host must not touch: every address that it gives lies in pages
// where each access faults, and what lies there is kept in pages elsewhere. Who reads or writes it
// other than by the lanes of the device ends the test program. Lanes are those of the host.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/collective/communicator.h"
#include "core/device/lane_device.h"

namespace shardwright::test {

// Where its memory lies: an extension of DLPack's list.
inline constexpr device::DeviceNumber kApartNumber{12, 3};

std::shared_ptr<device::LaneDevice> make_apart_device(bool inline_lanes);
// What lies at addresses of any such device; ends the program for others. Thread-safe.
std::byte* behind(const std::byte* address);
inline std::span<std::byte> behind(std::span<const std::byte> memory) {
  if (memory.data() == nullptr) return {};
  return {behind(memory.data()), memory.size()};
}

// inner for memory of such devices, and not for that of the host.
collective::CommunicatorPtr make_apart_communicator(collective::CommunicatorPtr inner);

}  // namespace shardwright::test

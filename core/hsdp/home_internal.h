// SPDX-License-Identifier: Apache-2.0
//
// Home: memory in which shards and their gradients lie, and who works in it. That of the device, or
// of the host where a unit offloads them.
#pragma once

#include "core/device/lane_device.h"
#include "core/device/memory_work.h"
#include "core/hsdp/unit_memory.h"

namespace shardwright::hsdp::internal {

// The context has both.
struct Home {
  UnitMemory* memory = nullptr;
  device::MemoryWork* work = nullptr;
  device::DeviceNumber number{};
};

}  // namespace shardwright::hsdp::internal

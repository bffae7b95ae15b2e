// SPDX-License-Identifier: Apache-2.0
//
// The device of host memory.
#pragma once

#include <memory>

#include "core/device/device.h"

namespace shardwright::device {

// Memory that the host reads and writes itself. No call fails but for what is said there.
std::unique_ptr<Device> make_host_device();

}  // namespace shardwright::device

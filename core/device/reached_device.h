// SPDX-License-Identifier: Apache-2.0
//
// Memory that the host reaches by the access that a window names (WindowAccess): what a Device does
// beyond copying bytes is done on the way, in memory of the host, a few at a time. No state.
#pragma once

#include <memory>

#include "core/device/device.h"

namespace shardwright::device {

// Takes windows that have an access.
std::unique_ptr<Device> make_reached_device();

}  // namespace shardwright::device

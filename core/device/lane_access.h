// SPDX-License-Identifier: Apache-2.0
//
// The memory of a LaneDevice as a WindowAccess: bytes travel over lanes of the device, through
// pinned memory of the host, a few megabytes at a time and for at most a few callers at once; the
// others wait. Lanes and memory are made when they are first needed and go with the access.
#pragma once

#include <memory>

#include "core/device/lane_device.h"
#include "core/tensor/window_access.h"

namespace shardwright::device {

// What is read was written before the call, in the order of any lane that was waited for. Failures
// are those of the device, named.
std::shared_ptr<WindowAccess> make_lane_access(std::shared_ptr<LaneDevice> device);

}  // namespace shardwright::device

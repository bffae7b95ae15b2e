// SPDX-License-Identifier: Apache-2.0
//
// A GPU as a device that work is put on: lanes are streams, events those of the CUDA runtime,
// memory that of the device, pinned memory that of the host which the device reaches by itself. A
// task of a lane is code of the host that runs in the order of the stream, on a thread of the
// driver; it must not call CUDA. Memory and lanes are those of one device, whichever device the
// calling thread has chosen. Thread-safe as LaneDevice says.
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/result.h"
#include "core/device/lane_device.h"

namespace shardwright::device {

// The device of that number among those that the process sees. UNAVAILABLE naming the driver and
// what to do where there is none; INVALID_ARGUMENT for a number that is not there.
Result<std::shared_ptr<LaneDevice>> make_cuda_lane_device(int32_t number);

}  // namespace shardwright::device

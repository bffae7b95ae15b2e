// SPDX-License-Identifier: Apache-2.0
//
// Communicators, works and devices as arguments and results of C functions. Any thread.
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/collective/communicator.h"
#include "core/device/lane_device.h"
#include "shardwright/communicator.h"
#include "shardwright/device.h"

namespace shardwright::capi {

Result<collective::CommunicatorPtr> read_communicator(const shw_communicator* communicator);
Result<shw_communicator*> communicator_of(collective::CommunicatorPtr communicator);

// The owner lives as long as the work, which goes before it.
Result<shw_work*> work_of(collective::WorkPtr work, std::shared_ptr<const void> owner);

// NULL gives the host.
Result<std::shared_ptr<device::LaneDevice>> read_device(const shw_device* device);
Result<shw_device*> device_of(std::shared_ptr<device::LaneDevice> device);

}  // namespace shardwright::capi

// SPDX-License-Identifier: Apache-2.0
//
// A host's device table as a core LaneDevice. The table is copied; release runs once, after all
// lanes, events and memory.
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/device/lane_device.h"
#include "shardwright/device.h"

namespace shardwright::capi {

// INVALID_ARGUMENT naming a required slot that is NULL.
Status check_device_slots(const shw_device_vtable& vtable);

std::shared_ptr<device::LaneDevice> make_host_table_device(const shw_device_vtable& vtable,
                                                           std::shared_ptr<void> owner);

}  // namespace shardwright::capi

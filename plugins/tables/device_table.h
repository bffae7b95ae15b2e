// SPDX-License-Identifier: Apache-2.0
//
// A device of the core that work is put on as the table that a plugin offers: the reverse of
// capi/adapters. The table's user is the device, which release destroys.
#pragma once

#include <memory>

#include "core/device/lane_device.h"
#include "shardwright/plugin.h"

namespace shardwright::plugin_tables {

// All functions; no user or flags yet.
shw_device_vtable device_functions(const char* name);
// Takes the device over.
void fill_table(std::shared_ptr<device::LaneDevice> device, shw_device_vtable* table);

}  // namespace shardwright::plugin_tables

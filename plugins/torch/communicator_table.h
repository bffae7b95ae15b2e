// SPDX-License-Identifier: Apache-2.0
//
// A communicator of the core as the table that a plugin offers: the reverse of capi/adapters. The
// table's user is the communicator, which release destroys; a work of the table is a Work.
#pragma once

#include "core/collective/communicator.h"
#include "shardwright/plugin.h"

namespace shardwright::torch_plugin {

// All functions; no user, rank or size yet. Sums are made by the host of what is there.
shw_communicator_vtable communicator_functions();
// Takes the communicator over.
void fill_table(collective::CommunicatorPtr communicator, shw_communicator_vtable* table);

}  // namespace shardwright::torch_plugin

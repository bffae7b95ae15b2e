// SPDX-License-Identifier: Apache-2.0
//
// A communicator of the core as the table that a plugin offers: the reverse of capi/adapters. The
// table's user is the communicator, which release destroys; a work of the table is a Work.
#pragma once

#include "core/collective/communicator.h"
#include "shardwright/plugin.h"

namespace shardwright::plugin_tables {

// The functions that a table must have; no user, rank or size yet. The host makes all others of
// them, sums in rank order.
shw_communicator_vtable communicator_functions(const char* name);
// Those of a transport that reduces, broadcasts and orders streams itself.
void add_own_operations(shw_communicator_vtable* table);
// Takes the communicator over.
void fill_table(collective::CommunicatorPtr communicator, shw_communicator_vtable* table);

}  // namespace shardwright::plugin_tables

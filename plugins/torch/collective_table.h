// SPDX-License-Identifier: Apache-2.0
//
// A collective of the core as the table that a plugin offers: the reverse of capi/adapters. The
// table's user is the collective; release destroys it.
#pragma once

#include <memory>

#include "core/collective/collective.h"
#include "shardwright/plugin.h"

namespace shardwright::torch_plugin {

// All functions; no user, rank or size yet.
shw_collective_vtable collective_functions();
// Takes the collective over.
void fill_table(std::unique_ptr<collective::Collective> collective, shw_collective_vtable* table);

}  // namespace shardwright::torch_plugin

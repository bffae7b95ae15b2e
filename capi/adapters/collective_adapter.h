// SPDX-License-Identifier: Apache-2.0
//
// A host's collective table as a core Collective. The table is copied; release runs once. One
// thread at a time, abort aside.
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/collective/collective.h"
#include "shardwright/collective.h"

namespace shardwright::capi {

// INVALID_ARGUMENT naming a required slot that is NULL.
Status check_collective_slots(const shw_collective_vtable& vtable);
// Rank and size of a table that is ready for use.
Status check_collective_ranks(const shw_collective_vtable& vtable);

Result<std::shared_ptr<collective::Collective>> make_host_collective(
    const shw_collective_vtable& vtable, std::shared_ptr<void> owner);

}  // namespace shardwright::capi

// SPDX-License-Identifier: Apache-2.0
//
// A host's communicator table as a core Communicator. The table is copied; release runs once, after
// all works. One thread at a time, abort aside.
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/collective/communicator.h"
#include "shardwright/communicator.h"

namespace shardwright::capi {

// INVALID_ARGUMENT naming a required slot that is NULL.
Status check_communicator_slots(const shw_communicator_vtable& vtable);
// Rank and size of a table that is ready for use.
Status check_communicator_ranks(const shw_communicator_vtable& vtable);

collective::CommunicatorPtr make_host_communicator(const shw_communicator_vtable& vtable,
                                                   std::shared_ptr<void> owner);

}  // namespace shardwright::capi

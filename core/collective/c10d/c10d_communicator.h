// SPDX-License-Identifier: Apache-2.0
//
// The communicator over process groups of PyTorch (c10d): gathers and exchanges of elements in host
// memory over a side group of its own, straight from and into that memory. An operation moves on by
// itself once it is issued; sums are made of exchanges in rank order. Part of the plugin for torch.
#pragma once

#include "core/base/result.h"
#include "core/collective/c10d/c10d_collective.h"
#include "core/collective/communicator.h"

namespace shardwright::collective {

// Collective. `request.keep` counts for nothing: each communicator has a side group, which ends
// with it. As make_c10d_collective; FAILED_PRECONDITION also for a group without Gloo.
Result<CommunicatorPtr> make_c10d_communicator(const GroupRequest& request);

}  // namespace shardwright::collective

// SPDX-License-Identifier: Apache-2.0
//
// The index of a rank's file from what the rank knows itself: its state, its own local plan and its
// write list. The coordinator's merged plan gives the same bytes. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "core/exec/block_filler_internal.h"

namespace shardwright::exec::internal {

// All tasks were filled. INTERNAL when list and state do not make a sound index.
Result<std::vector<std::byte>> encode_rank_index(const FillSource& source,
                                                 const BlockFiller& filler);

}  // namespace shardwright::exec::internal

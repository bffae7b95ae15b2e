// SPDX-License-Identifier: Apache-2.0
//
// Whether a write list, which may come from elsewhere, can be written. Pure function.
#pragma once

#include "core/base/status.h"
#include "core/plan/save_plan.h"
#include "core/state/state.h"

namespace shardwright::plan {

// Whether the list can be written from this state: its own rank and world size, each item an entry
// and a piece of the state with exactly its bytes, every item once. FAILED_PRECONDITION naming what
// differs.
Status check_write_list(const WriteList& list, const State& state, RankPosition position);

}  // namespace shardwright::plan

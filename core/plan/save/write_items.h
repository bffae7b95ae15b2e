// SPDX-License-Identifier: Apache-2.0
//
// What a rank writes of what it described, item by item. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/rank_plans.h"
#include "core/plan/save_plan.h"
#include "core/state/state.h"

namespace shardwright::plan {

// In the order of the catalog: chunks, then objects; an empty object has an item of no bytes, a box
// without elements none. kept: one bit per RankView::bit_count; order: as KeptItems has it.
std::vector<WriteItem> write_items(const RankView& rank, std::span<const uint64_t> kept,
                                   std::span<const uint32_t> order);

// Whether the list can be written from this state: its own rank and world size, each item an entry
// and a piece of the state with exactly its bytes, every item once. FAILED_PRECONDITION naming what
// differs.
Status check_write_list(const WriteList& list, const State& state, RankPosition position);

}  // namespace shardwright::plan

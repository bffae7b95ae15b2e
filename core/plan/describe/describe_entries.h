// SPDX-License-Identifier: Apache-2.0
//
// Symbolic descriptions out of flat arrays, for hosts that have no state of ours. Pure function;
// every number of the arrays is checked.
#pragma once

#include <span>

#include "core/layout/layout.h"
#include "core/plan/describe/builder.h"
#include "core/plan/describe/describe_boxes.h"
#include "core/plan/entry_arrays.h"

namespace shardwright::plan {

// layouts: one per entry or none at all; an entry with a layout lists no boxes, nullptr = its boxes
// count. The arrays numbers, order, secondary and attributes are absent. INVALID_ARGUMENT naming the
// entry, OUT_OF_RANGE for a box that leaves its tensor, ALREADY_EXISTS for a name that comes twice,
// UNIMPLEMENTED for a dtype without a name.
Result<LocalSymbolicPlan> describe_symbolic(const EntryArrays& entries,
                                            std::span<const Layout* const> layouts,
                                            const DescribeRules& rules);

}  // namespace shardwright::plan

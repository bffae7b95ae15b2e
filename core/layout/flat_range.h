// SPDX-License-Identifier: Apache-2.0
//
// Flattened shards: a run of the row-major elements of a box, as boxes. A run of an n-dimensional
// box is at most 2n - 1 boxes: parts of rows before and behind a block of whole rows, in each
// dimension. Pure functions.
#pragma once

#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/layout/box.h"
#include "core/layout/index_runs.h"
#include "core/layout/layout.h"

namespace shardwright {

// Appends the boxes of a range of elements of `box`, in order; local offsets count from the first
// of them, so that they lie in a local tensor of one dimension. None for an empty range. The range
// lies inside the box.
void append_flat_range(const Box& box, IndexRange range, std::vector<Piece>* out);

// The same after a check: OUT_OF_RANGE when the range leaves the box, INVALID_ARGUMENT for negative
// values or an element count that is no int64_t.
Result<std::vector<Piece>> flat_range_pieces(const Box& box, IndexRange range);

}  // namespace shardwright

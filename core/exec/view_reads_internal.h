// SPDX-License-Identifier: Apache-2.0
//
// What a read of a view reads of its source: one box for each piece that lies in a box, for one
// that lies in a run as many as the box has runs there, for elements of a box in a row as many as
// these are boxes. Pure.
#pragma once

#include <vector>

#include "core/exec/checkpoint_view.h"

namespace shardwright::exec::internal {

// Sizes of the box in the source.
const Dims& sizes_in_source(const ViewPiece& piece);
// Whether they are those in the view but for dimensions of 1.
bool has_same_dimensions(const ViewPiece& piece);

// The part of the memory of a read that is a box of it.
TensorView memory_of(const BoxRead& read, const Box& part);

// A part of a piece, and the read of the view that wants it.
struct WantedPart {
  const Box& part;
  const BoxRead& read;
};

// source_rank: dimensions of the tensor that the piece lies in. UNIMPLEMENTED for what needs
// contiguous memory and has other.
Status add_piece_reads(const ViewPiece& piece, size_t source_rank, const WantedPart& wanted,
                       std::vector<BoxRead>* reads);

}  // namespace shardwright::exec::internal

// SPDX-License-Identifier: Apache-2.0
//
// How the pieces of an entry lie in its local tensor. Pure functions of a description.
#pragma once

#include <cstdint>

#include "core/state/tensor_entry.h"

namespace shardwright {

enum class PiecePlace : uint8_t {
  // One piece: the whole local tensor; extents of 1 that lead its box may be missing there.
  kWhole,
  kWindow,  // the local tensor has the dimensions of the boxes, and each is a box of it too
  kRun      // each is a run of elements of the local tensor, which is contiguous
};
// The first of these that the shapes allow.
PiecePlace place_of_pieces(const TensorRef& tensor);

// The box of the local tensor that a kWindow piece is: the index of its local offset, and its
// sizes. The piece has been checked, or its local offset is below the local element count.
Box local_window(const TensorRef& tensor, size_t piece);

}  // namespace shardwright

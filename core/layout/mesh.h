// SPDX-License-Identifier: Apache-2.0
//
// Mesh: the global ranks of a layout as a row-major array with named axes. Value type; the
// functions are pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/tensor/dims.h"

namespace shardwright {

struct Mesh {
  Dims shape;
  std::vector<std::string> axis_names;  // empty or one per axis
  std::vector<int32_t> ranks;           // row-major; empty = 0, 1, 2, ...
};

// Number of ranks of a mesh whose shape and names are sound. INVALID_ARGUMENT: extents below 1,
// more axes than kMaxTensorRank or ranks than kMaxWorldSize, names that are doubled, not UTF-8 or
// not one per axis.
Result<int64_t> checked_mesh_size(const Mesh& mesh);

// Positions in mesh.ranks ordered by rank; empty when the ranks are 0, 1, 2, ... INVALID_ARGUMENT
// unless there are mesh_size ranks, none negative or doubled.
Result<std::vector<int32_t>> positions_by_rank(const Mesh& mesh, int64_t mesh_size);

// The axis for messages: its number, and its name where it has one.
std::string axis_text(const Mesh& mesh, size_t axis);

}  // namespace shardwright

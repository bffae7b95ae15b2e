// SPDX-License-Identifier: Apache-2.0
//
// ShardAxis: one cut of a tensor, written so that all ranks of a regular job share it: a rank's
// coordinate is arithmetic on its number, and no mesh has to be listed. Axes that replicate are
// left out, for they do not change what a rank holds. Values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/layout/box.h"
#include "core/layout/layout.h"

namespace shardwright {

// Cuts dimension `dim` into `extent` parts as chunk_of does (core/layout/index_range.h); the rank
// holds part (rank / stride + phase) mod extent. Several axes of one dimension nest in the order of
// their list: the first cuts the tensor, each further one what the one before left.
struct ShardAxis {
  int32_t dim = 0;     // from 0
  int32_t extent = 2;  // at least 2
  int32_t stride = 1;  // at least 1
  int32_t phase = 0;   // from 0, below extent
  friend bool operator==(const ShardAxis&, const ShardAxis&) = default;
};
static_assert(sizeof(ShardAxis) == 16);

// Cuts that one layout may have; more are described by boxes.
inline constexpr size_t kMaxShardAxes = 8;

inline int64_t axis_coordinate(const ShardAxis& axis, int64_t rank) {
  return (rank / axis.stride + axis.phase) % axis.extent;
}

// The cuts of a layout as `rank` sees them, for tensors of `dimension_count` dimensions; nullopt
// when the rank is outside the mesh and holds nothing. Right for this rank whatever its mesh looks
// like; ranks of one regular mesh get equal axes. INVALID_ARGUMENT for a dimension that the tensor
// lacks.
Result<std::optional<std::vector<ShardAxis>>> shard_axes_of(const Layout& layout,
                                                            size_t dimension_count, int32_t rank);

// What rank holds of a tensor of this shape; may be empty.
Box box_of_axes(std::span<const ShardAxis> axes, std::span<const int64_t> shape, int32_t rank);

}  // namespace shardwright

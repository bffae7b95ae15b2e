// SPDX-License-Identifier: Apache-2.0
//
// Layouts to axes. The stride of a mesh axis is read off the rank's neighbour on it; the phase
// makes the rank's own coordinate right, so an irregular mesh costs further distinct descriptions
// and never correctness.
#include "core/layout/shard_axis.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "core/layout/index_range.h"

namespace shardwright {
namespace {

ShardAxis axis_of(const Layout& layout, const Cut& cut, int64_t position) {
  const auto number = static_cast<size_t>(cut.axis);
  const int64_t extent = layout.mesh().shape[number];
  const int64_t coordinate = layout.coordinate(position, number);
  const int64_t below = layout.axis_stride(number);
  const int64_t neighbour = coordinate + 1 < extent ? position + below : position - below;
  const int32_t rank = layout.rank_at(position);
  const int32_t stride = std::abs(layout.rank_at(neighbour) - rank);
  const int64_t drift = (coordinate - rank / stride) % extent;
  return {cut.dim, static_cast<int32_t>(extent), stride,
          static_cast<int32_t>(drift < 0 ? drift + extent : drift)};
}

// A strided cut whose factor is the product of cuts that follow in its dimension nests behind them,
// as under FSDP with tensor parallelism. What this makes of other strides is not what the rank
// holds, and whoever describes a tensor compares.
void nest(std::span<const int32_t> factors, std::vector<ShardAxis>* axes) {
  for (size_t i = axes->size(); i-- > 0;) {
    int32_t left = factors[i];
    for (size_t j = i; left > 1 && j + 1 < axes->size(); ++j) {
      ShardAxis& next = (*axes)[j + 1];
      if (next.dim == (*axes)[j].dim) left /= next.extent;
      std::swap((*axes)[j], next);
    }
  }
}

}  // namespace

Result<std::optional<std::vector<ShardAxis>>> shard_axes_of(const Layout& layout,
                                                            size_t dimension_count, int32_t rank) {
  const auto dimensions = static_cast<int32_t>(dimension_count);
  const int64_t position = layout.position_of(rank);
  std::vector<ShardAxis> axes;
  std::vector<int32_t> factors;
  for (Cut cut : layout.cuts()) {
    if (cut.dim == kFlatDim) continue;
    if (cut.dim >= dimensions || cut.dim < -dimensions) {
      return invalid_argument(
          fmt::format("mesh axis {} cuts dimension {} of a tensor of {} dimensions", cut.axis,
                      cut.dim, dimensions));
    }
    if (cut.dim < 0) cut.dim += dimensions;
    if (position < 0 || layout.mesh().shape[static_cast<size_t>(cut.axis)] == 1) continue;
    axes.push_back(axis_of(layout, cut, position));
    factors.push_back(cut.factor);
  }
  if (position < 0) return std::optional<std::vector<ShardAxis>>();
  nest(factors, &axes);
  return std::optional<std::vector<ShardAxis>>(std::move(axes));
}

Box box_of_axes(std::span<const ShardAxis> axes, std::span<const int64_t> shape, int32_t rank) {
  Box box = whole_box(shape);
  for (const ShardAxis& axis : axes) {
    const auto d = static_cast<size_t>(axis.dim);
    const IndexRange kept =
        chunk_of({box.offsets[d], box.sizes[d]}, axis.extent, axis_coordinate(axis, rank));
    box.offsets[d] = kept.begin;
    box.sizes[d] = kept.size;
  }
  return box;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "core/layout/grid.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/layout/flat_range.h"

namespace shardwright {
namespace {

__extension__ using Wide = __int128;  // products of two int64_t

// Extent of the local tensor on an axis of the global one.
int64_t local_extent(const GridShard& shard, size_t axis) {
  const auto prepended = static_cast<size_t>(shard.prepended);
  return axis < prepended ? 1 : shard.local_shape[axis - prepended];
}

Status check_axis_counts(const GridShard& shard) {
  const size_t axes = shard.global_shape.size();
  if (shard.prepended < 0 || axes > static_cast<size_t>(kMaxTensorRank) ||
      shard.local_shape.size() + static_cast<size_t>(shard.prepended) != axes) {
    return invalid_argument(
        fmt::format("a local shape of {} and {} prepended axes do not make a global shape of {}",
                    shard.local_shape.size(), shard.prepended, axes));
  }
  if (shard.offsets.size() != axes) {
    return invalid_argument(
        fmt::format("{} offsets for a global shape of {} axes", shard.offsets.size(), axes));
  }
  if (shard.fragments.has_value() && shard.fragments->size() != axes) {
    return invalid_argument(
        fmt::format("{} fragments for a global shape of {} axes", shard.fragments->size(), axes));
  }
  return {};
}

Status check_regular_axis(const GridShard& shard, size_t axis) {
  const int64_t parts = (*shard.fragments)[axis];
  const int64_t extent = local_extent(shard, axis);
  if (parts < 1) return invalid_argument(fmt::format("axis {} has {} fragments", axis, parts));
  if (extent != 0 && shard.offsets[axis] % extent != 0) {
    return invalid_argument(
        fmt::format("the offset {} of axis {} is no multiple of the local extent {}",
                    shard.offsets[axis], axis, extent));
  }
  int64_t whole = 0;
  if (shard.shape_may_differ ||
      (checked_multiply(parts, extent, &whole) && whole == shard.global_shape[axis])) {
    return {};
  }
  return invalid_argument(fmt::format("{} fragments of {} do not make the extent {} of axis {}",
                                      parts, extent, shard.global_shape[axis], axis));
}

Status check_place(const Dims& local_shape, size_t axes, const RankOffset& place) {
  if (place.axis < 0 || static_cast<size_t>(place.axis) >= axes) {
    return invalid_argument(fmt::format("a rank offset names axis {} of {} (local shape of {})",
                                        place.axis, axes, local_shape.size()));
  }
  if (place.index < 0 || place.count < 1 || place.index >= place.count) {
    return invalid_argument(fmt::format("invalid rank offset: part {} of {} on axis {}",
                                        place.index, place.count, place.axis));
  }
  return {};
}

}  // namespace

Result<GridShard> grid_shard_at(Dims local_shape, int32_t prepended,
                                std::span<const RankOffset> places) {
  SHW_RETURN_IF_ERROR(checked_element_count(local_shape).status());
  if (prepended < 0 || prepended > kMaxTensorRank) {
    return invalid_argument(fmt::format("{} prepended axes", prepended));
  }
  const size_t axes = local_shape.size() + static_cast<size_t>(prepended);
  GridShard shard;
  shard.prepended = prepended;
  shard.global_shape = Dims(axes, 1);
  std::copy(local_shape.begin(), local_shape.end(), shard.global_shape.begin() + prepended);
  shard.offsets = Dims(axes, 0);
  shard.fragments = Dims(axes, 1);
  shard.local_shape = std::move(local_shape);
  for (const RankOffset& place : places) {
    SHW_RETURN_IF_ERROR(check_place(shard.local_shape, axes, place));
    const auto axis = static_cast<size_t>(place.axis);
    const int64_t extent = local_extent(shard, axis);
    if (!checked_multiply(place.count, extent, &shard.global_shape[axis])) {
      return invalid_argument(fmt::format("{} parts of {} elements on axis {} are too many",
                                          place.count, extent, axis));
    }
    shard.offsets[axis] = place.index * extent;
    (*shard.fragments)[axis] = place.count;
  }
  SHW_RETURN_IF_ERROR(check_grid_shard(shard));
  return shard;
}

Status check_grid_shard(const GridShard& shard) {
  SHW_RETURN_IF_ERROR(check_axis_counts(shard));
  SHW_RETURN_IF_ERROR(checked_element_count(shard.global_shape).status());
  SHW_ASSIGN_OR_RETURN(const int64_t local_count, checked_element_count(shard.local_shape));
  SHW_RETURN_IF_ERROR(check_box(grid_box(shard), shard.global_shape));
  for (size_t axis = 0; shard.fragments.has_value() && axis < shard.offsets.size(); ++axis) {
    SHW_RETURN_IF_ERROR(check_regular_axis(shard, axis));
  }
  if (!shard.flat_range.has_value()) return {};
  const Box all{{0}, {local_count}};
  return check_box({{shard.flat_range->begin}, {shard.flat_range->size}}, all.sizes);
}

Box grid_box(const GridShard& shard) {
  Box box{shard.offsets, Dims(shard.offsets.size(), 1)};
  std::copy(shard.local_shape.begin(), shard.local_shape.end(),
            box.sizes.begin() + shard.prepended);
  return box;
}

Dims grid_index(const GridShard& shard) {
  Dims index = shard.offsets;
  for (size_t axis = 0; axis < index.size(); ++axis) {
    index[axis] /= std::max<int64_t>(local_extent(shard, axis), 1);
  }
  return index;
}

Result<std::vector<Piece>> grid_pieces(const GridShard& shard) {
  SHW_RETURN_IF_ERROR(check_grid_shard(shard));
  if (!shard.flat_range.has_value()) return std::vector<Piece>{{grid_box(shard), 0}};
  return flat_range_pieces(grid_box(shard), *shard.flat_range);
}

bool is_main_replica(std::span<const int64_t> replica_id) {
  return std::ranges::all_of(replica_id, [](int64_t number) { return number == 0; });
}

Result<FlatEntry> flat_entry_of(const GridShard& shard) {
  SHW_RETURN_IF_ERROR(check_grid_shard(shard));
  if (!shard.fragments.has_value() || !shard.flat_range.has_value()) {
    return invalid_argument("only a flat range of a regular grid has a flattened entry");
  }
  const size_t axes = shard.offsets.size();
  const Dims index = grid_index(shard);
  FlatEntry entry{Dims(axes + 1, 0), {Dims(axes + 1, 0), Dims(axes + 1, 1)}};
  std::ranges::copy(*shard.fragments, entry.shape.begin());
  std::ranges::copy(index, entry.box.offsets.begin());
  entry.shape[axes] = element_count_of(shard.local_shape);
  entry.box.offsets[axes] = shard.flat_range->begin;
  entry.box.sizes[axes] = shard.flat_range->size;
  SHW_RETURN_IF_ERROR(check_box(entry.box, entry.shape));
  return entry;
}

Result<std::vector<Piece>> flat_entry_pieces(std::span<const int64_t> original_shape,
                                             std::span<const int64_t> entry_shape,
                                             const Box& chunk) {
  const size_t axes = original_shape.size();
  SHW_RETURN_IF_ERROR(checked_element_count(original_shape).status());
  SHW_RETURN_IF_ERROR(check_box(chunk, entry_shape));
  if (entry_shape.size() != axes + 1) {
    return invalid_argument(
        fmt::format("a flattened entry of {} axes for a tensor of {}", entry_shape.size(), axes));
  }
  Box part{Dims(axes, 0), Dims(axes, 0)};
  for (size_t axis = 0; axis < axes; ++axis) {
    if (entry_shape[axis] < 1 || original_shape[axis] % entry_shape[axis] != 0) {
      return invalid_argument(fmt::format("{} parts do not divide the extent {} of axis {}",
                                          entry_shape[axis], original_shape[axis], axis));
    }
    if (chunk.sizes[axis] != 1) {
      return invalid_argument(
          fmt::format("the chunk holds {} parts of axis {}, not one", chunk.sizes[axis], axis));
    }
    part.sizes[axis] = original_shape[axis] / entry_shape[axis];
    part.offsets[axis] = chunk.offsets[axis] * part.sizes[axis];
  }
  if (entry_shape[axes] != box_element_count(part)) {
    return invalid_argument(fmt::format("a part has {} elements, the flattened entry {}",
                                        box_element_count(part), entry_shape[axes]));
  }
  return flat_range_pieces(part, {chunk.offsets[axes], chunk.sizes[axes]});
}

IndexRange overlapping_parts(int64_t stored, int64_t wanted, int64_t index) {
  const auto first = static_cast<int64_t>(Wide{stored} * index / wanted);
  const auto end = static_cast<int64_t>((Wide{stored} * (index + 1) + wanted - 1) / wanted);
  return {first, end - first};
}

}  // namespace shardwright

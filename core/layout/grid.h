// SPDX-License-Identifier: Apache-2.0
//
// GridShard: one shard of a tensor as Megatron Core describes it (ShardedTensor of
// dist_checkpointing, 0.12 to 0.19): a local tensor, where it lies in the global one, and into how
// many equal parts each axis is cut. Leading axes may be prepended: the local tensor lacks them and
// has extent 1 there. A shard may hold a flat range only, as distributed optimizers do. Different
// on purpose: everything is checked, bounds, agreement of fragments with shapes and negative values
// included, and irregular grids with prepended axes work. Value types, pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/layout/box.h"
#include "core/layout/index_runs.h"
#include "core/layout/layout.h"

namespace shardwright {

struct GridShard {
  Dims local_shape;                      // without the prepended axes
  Dims global_shape;                     // with them
  Dims offsets;                          // in elements of the global tensor
  std::optional<Dims> fragments;         // equal parts per global axis; none = irregular grid
  int32_t prepended = 0;                 // leading axes that the local tensor lacks
  bool shape_may_differ = false;         // fragments times local shape need not be the global shape
  std::optional<IndexRange> flat_range;  // row-major elements of the local shape; none = all
};

// Place of a shard on one axis: part `index` of `count`.
struct RankOffset {
  int32_t axis = 0;  // of the global tensor
  int64_t index = 0;
  int64_t count = 1;
};

// The regular shard of a local shape: each axis named in `places` has count times the local extent.
// An axis named twice keeps its last place, as in Megatron. INVALID_ARGUMENT: an axis that is not
// there, an index outside 0 to count - 1, a global shape that overflows.
Result<GridShard> grid_shard_at(Dims local_shape, int32_t prepended,
                                std::span<const RankOffset> places);

// INVALID_ARGUMENT: counts that do not fit together, negative values, fragments that do not agree
// with the shapes, an offset that is no multiple of the local extent of a regular grid.
// OUT_OF_RANGE: the shard leaves the tensor, the flat range the shard.
Status check_grid_shard(const GridShard& shard);

// The box of a checked shard, flat range aside: the local shape with extents of 1 before it.
Box grid_box(const GridShard& shard);

// Number of the shard's part on each axis of a checked regular grid (0 on an axis of extent 0).
Dims grid_index(const GridShard& shard);

// What the rank holds, after check_grid_shard: the box, or the boxes of the flat range.
Result<std::vector<Piece>> grid_pieces(const GridShard& shard);

// Whether this replica is the one that saves: all numbers of its id are 0, or there are none.
bool is_main_replica(std::span<const int64_t> replica_id);

// How Megatron Core up to 0.14 stored a flat range: an entry with one axis per part number and a
// last one for the elements of a part.
struct FlatEntry {
  Dims shape;
  Box box;
};

// INVALID_ARGUMENT as check_grid_shard, and without fragments or flat range.
Result<FlatEntry> flat_entry_of(const GridShard& shard);

// The boxes of the original tensor that a chunk of such an entry holds; local offsets count its
// elements. INVALID_ARGUMENT: shapes that do not fit together, parts that do not divide the
// original shape, a chunk of several parts.
Result<std::vector<Piece>> flat_entry_pieces(std::span<const int64_t> original_shape,
                                             std::span<const int64_t> entry_shape,
                                             const Box& chunk);

// Which of `stored` equal parts of an axis meet part `index` of `wanted` equal parts: exact, for
// axes of any extent that both divide. Counts are positive, index is below wanted.
IndexRange overlapping_parts(int64_t stored, int64_t wanted, int64_t index);

}  // namespace shardwright

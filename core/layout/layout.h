// SPDX-License-Identifier: Apache-2.0
//
// Layout: a device mesh and one placement per mesh axis; a pure rule that gives each rank its boxes
// of a tensor. Shard follows torch.distributed.tensor (2.x): chunks of ceil(size / parts) in order,
// the last ones short or empty; several axes that shard one dimension nest from the first axis to
// the last. StridedShard and Partial are refused with UNIMPLEMENTED. Immutable, any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/layout/box.h"

namespace shardwright {

// Row-major array of global ranks with named axes.
struct Mesh {
  Dims shape;
  std::vector<std::string> axis_names;  // empty or one per axis
  std::vector<int32_t> ranks;           // row-major; empty = 0, 1, 2, ...
};

enum class PlacementKind : int32_t { kReplicate = 0, kShard = 1, kStridedShard = 2, kPartial = 3 };
struct Placement {
  PlacementKind kind = PlacementKind::kReplicate;
  int32_t dim = 0;     // kShard, kStridedShard; negative counts from the end
  int32_t factor = 0;  // kStridedShard
};

// One box of an entry and where its elements start in the rank's local tensor (row-major elements).
struct Piece {
  Box box;
  int64_t local_offset_elements = 0;
};

class Layout {
 public:
  // INVALID_ARGUMENT: wrong counts, duplicate or negative ranks. UNIMPLEMENTED: placements named
  // above.
  static Result<std::shared_ptr<const Layout>> create(Mesh mesh, std::vector<Placement> placements);

  const Mesh& mesh() const { return mesh_; }
  const std::vector<Placement>& placements() const { return placements_; }
  // Boxes that rank holds of a tensor of this shape: one box, or none when the rank is not in the
  // mesh. The box may be empty (uneven shards). INVALID_ARGUMENT when a placement names a dimension
  // that the shape lacks.
  Result<std::vector<Piece>> pieces(std::span<const int64_t> global_shape, int32_t rank) const;
  bool contains(int32_t rank) const;

 private:
  Layout() = default;
  // Row-major position of rank in the mesh, or -1.
  int64_t position_of(int32_t rank) const;

  Mesh mesh_;
  std::vector<Placement> placements_;
  std::vector<int32_t>
      ranks_by_value_;  // with explicit ranks: positions in mesh_.ranks, ordered by rank
  int64_t mesh_size_ = 0;
};

}  // namespace shardwright

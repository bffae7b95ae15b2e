// SPDX-License-Identifier: Apache-2.0
//
// Layout: a device mesh and a list of cuts; a pure rule that gives each rank its pieces of a
// tensor. A cut says that one mesh axis splits one dimension of what the cuts before it left.
// Placements of torch.distributed.tensor, tensor maps of HyperParallel and flattened shards are
// three ways to write such a list. core/layout/split.h tells more about a layout and one shape.
// Immutable, any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/layout/box.h"
#include "core/layout/mesh.h"

namespace shardwright {

// What a mesh axis does to a tensor. kFlat: the row-major elements that all other axes leave are
// cut, so that the local tensor has one dimension.
enum class PlacementKind : int32_t {
  kReplicate = 0,
  kShard = 1,
  kStridedShard = 2,
  kPartial = 3,
  kFlat = 4
};
struct Placement {
  PlacementKind kind = PlacementKind::kReplicate;
  int32_t dim = 0;     // kShard, kStridedShard; negative counts from the end
  int32_t factor = 0;  // kStridedShard: at least 1
};

// Per tensor dimension the mesh axes that split it, the outermost first. Axes are counted from the
// right: 0 is the last one. -1 splits nothing.
using TensorMap = std::vector<std::vector<int32_t>>;

inline constexpr int32_t kFlatDim = std::numeric_limits<int32_t>::min();
inline constexpr int32_t kAnyTensorRank = -1;

// One mesh axis that splits one dimension into as many parts as the axis is long.
struct Cut {
  int32_t axis = 0;    // of the mesh, from the left
  int32_t dim = 0;     // of the tensor; negative counts from the end; kFlatDim: see kFlat
  int32_t factor = 1;  // above 1: see IndexRuns::keep_part
  friend bool operator==(const Cut&, const Cut&) = default;
};

// One box of an entry and where it begins in the rank's local tensor (row-major elements). See
// State::add_tensors for how it lies there.
struct Piece {
  Box box;
  int64_t local_offset_elements = 0;
  friend bool operator==(const Piece&, const Piece&) = default;
};

class Layout {
 public:
  using Ptr = std::shared_ptr<const Layout>;  // co-owned by the states and handles that use it

  // One placement per mesh axis; they cut from the first axis to the last. INVALID_ARGUMENT: wrong
  // counts, duplicate or negative ranks, a stride factor that is not 1 to kMaxWorldSize.
  // FAILED_PRECONDITION: a Partial placement, whose tensor must be reduced first.
  static Result<Ptr> create(Mesh mesh, const std::vector<Placement>& placements);
  // HyperParallel's form; only for tensors of as many dimensions as the map has entries.
  // INVALID_ARGUMENT: also an axis that the mesh lacks or that is used twice. UNIMPLEMENTED: a mesh
  // axis called "interleaved_parallel".
  static Result<Ptr> create_mapped(Mesh mesh, const TensorMap& map);
  // The general form, to which the others come down: cuts() and tensor_rank() of another layout.
  static Result<Ptr> create_cut(Mesh mesh, std::vector<Cut> cuts, int32_t tensor_rank);

  const Mesh& mesh() const { return mesh_; }
  // In the order in which they cut. Each axis cuts at most once; flat ones come last.
  std::span<const Cut> cuts() const { return cuts_; }
  // Dimensions of the tensors that it describes, or kAnyTensorRank.
  int32_t tensor_rank() const { return tensor_rank_; }
  bool is_strided() const { return strided_; }  // some cut has a factor above 1
  bool is_flat() const { return !cuts_.empty() && cuts_.back().dim == kFlatDim; }
  // Whether the axis cuts anything; if not, the ranks along it are replicas.
  bool cuts_with(size_t axis) const { return (cut_axes_ >> axis & 1) != 0; }

  int64_t rank_count() const { return mesh_size_; }
  bool contains(int32_t rank) const { return position_of(rank) >= 0; }
  // Row-major position in the mesh, -1 for a rank outside; and back.
  int64_t position_of(int32_t rank) const;
  int32_t rank_at(int64_t position) const;
  int64_t axis_stride(size_t axis) const { return axis_strides_[axis]; }
  int64_t coordinate(int64_t position, size_t axis) const {
    return position / axis_strides_[axis] % mesh_.shape[axis];
  }

  // What rank holds of a tensor of this shape: one piece unless strides or flattening make several,
  // none when the rank is not in the mesh or its flat part is empty. An empty box begins at the end
  // of each dimension of which the rank holds nothing. INVALID_ARGUMENT when a cut names a
  // dimension that the shape lacks; RESOURCE_EXHAUSTED above kMaxPiecesPerRank.
  Result<std::vector<Piece>> pieces(std::span<const int64_t> global_shape, int32_t rank) const;
  // Shape of the local tensor that the pieces lie in; one dimension for flat layouts. A rank
  // outside the mesh holds {0}.
  Result<Dims> local_shape(std::span<const int64_t> global_shape, int32_t rank) const;

 private:
  Layout() = default;

  Mesh mesh_;
  std::vector<Cut> cuts_;
  int32_t tensor_rank_ = kAnyTensorRank;
  bool strided_ = false;
  uint64_t cut_axes_ = 0;  // bit per axis
  Dims axis_strides_;      // ranks per step of each axis
  int64_t mesh_size_ = 0;
  std::vector<int32_t> positions_by_rank_;  // empty: position = rank
};

}  // namespace shardwright

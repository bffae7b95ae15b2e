// SPDX-License-Identifier: Apache-2.0
//
// SplitView: a layout bound to the shape of one tensor. It numbers the parts of each dimension, the
// cells that their combinations are, and the replicas of each cell, so that who holds what is
// arithmetic on mesh positions and no table of ranks is needed. Borrows layout and shape, which
// must outlive it. Cheap to make and to copy; immutable.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/layout/index_runs.h"
#include "core/layout/layout.h"

namespace shardwright {

// One mesh axis that cuts a dimension.
struct AxisCut {
  int32_t axis = 0;    // of the mesh
  int64_t parts = 1;   // extent of the axis
  int64_t factor = 1;  // see IndexRuns::keep_part
  friend bool operator==(const AxisCut&, const AxisCut&) = default;
};

class SplitView {
 public:
  // INVALID_ARGUMENT: a cut names a dimension that the shape lacks, the layout is for another
  // number of dimensions, a shape whose element count is no int64_t.
  static Result<SplitView> create(const Layout& layout, std::span<const int64_t> shape);

  const Layout& layout() const { return *layout_; }
  std::span<const int64_t> shape() const { return shape_; }
  // Axes that cut the dimension (kFlatDim: the flattened elements), the outermost first.
  std::vector<AxisCut> cuts(int32_t dim) const;
  // Neither strided nor flat: each rank holds one box, a cell of a grid whose lines may be uneven.
  bool is_grid() const { return !layout_->is_strided() && !layout_->is_flat(); }

  // Parts of a dimension, or of the flattened elements: the product of its cuts. A part is numbered
  // by the coordinates on the axes that cut, the outermost most significant.
  int64_t part_count(int32_t dim) const;
  int64_t part_of(int32_t dim, int64_t position) const;
  // Indices of a part of a dimension that has no stride. Parts ascend, except that empty ones begin
  // at the end of the dimension.
  IndexRange range(int32_t dim, int64_t part) const;
  // How many of these parts are not empty.
  int64_t filled_part_count(int32_t dim) const;

  // Cells: combinations of parts, row-major over the dimensions, flattened elements last. Ranks of
  // one cell hold the same pieces.
  int64_t cell_count() const;
  int64_t cell_of(int64_t position) const;
  // Cells of a grid that hold an element: the number of distinct boxes that are not empty.
  int64_t filled_cell_count() const;

  // Ranks per cell. (cell, replica) to mesh position is one to one and ascends with the replica.
  int64_t replica_count() const { return layout_->rank_count() / cell_count(); }
  int64_t position_of(int64_t cell, int64_t replica) const;

  // The pieces of the rank at a mesh position; see Layout::pieces. O(dimensions x cuts + pieces),
  // and the factor of each strided cut. Allocates only what `out` needs unless a cut is strided.
  Status append_pieces(int64_t position, std::vector<Piece>* out) const;
  Dims local_shape(int64_t position) const;

 private:
  SplitView(const Layout& layout, std::span<const int64_t> shape)
      : layout_(&layout), shape_(shape) {}

  int32_t rank() const { return static_cast<int32_t>(shape_.size()); }
  int64_t extent(int32_t dim) const { return shape_[static_cast<size_t>(dim)]; }
  int64_t parts(const Cut& cut) const {
    return layout_->mesh().shape[static_cast<size_t>(cut.axis)];
  }
  bool cuts_dim(const Cut& cut, int32_t dim) const {
    return cut.dim == dim || (cut.dim < 0 && cut.dim != kFlatDim && cut.dim + rank() == dim);
  }
  // What the cuts of the dimension leave of a range, in their order; part_of_cut says which part of
  // each.
  template <typename PartOfCut>
  IndexRange nested_chunk(int32_t dim, IndexRange range, const PartOfCut& part_of_cut) const;
  // What the rank at a mesh position holds of `extent` indices.
  IndexRange range_at(int32_t dim, int64_t extent, int64_t position) const;
  IndexRuns runs_at(int32_t dim, int64_t position) const;
  Box box_at(int64_t position) const;
  Status append_strided(int64_t position, std::vector<Piece>* out) const;

  const Layout* layout_;
  std::span<const int64_t> shape_;
};

}  // namespace shardwright

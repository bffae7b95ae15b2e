// SPDX-License-Identifier: Apache-2.0
//
// ShardGrid: the boxes of a tensor that is cut by axes, as a rule. A column is one combination of
// coordinates, numbered row-major over the axes as given; a chunk is a column whose box is not
// empty, numbered row-major by offsets as catalogs number them. Nothing is listed: size, box and
// number come from arithmetic in O(axes). The boxes are those that box_of_axes gives rank by rank;
// ShardGrid.EqualsTheEnumerationOfItsColumns holds them equal. Immutable after make, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/plan/catalog.h"
#include "core/plan/shard_axis.h"

namespace shardwright::plan::internal {

// A cut of the grid. Axes of one dimension nest by ascending level.
struct GridAxis {
  int32_t dim = 0;
  int32_t extent = 2;
  int32_t level = 0;
  friend bool operator==(const GridAxis&, const GridAxis&) = default;
};

// Columns first to first + count - 1 hold `elements` each.
struct ColumnRun {
  uint32_t first = 0;
  uint32_t count = 0;
  int64_t elements = 0;
};

class ShardGrid {
 public:
  // The product of the extents is at most kMaxWorldSize; dims are those of the shape, whose element
  // count fits. INTERNAL when the cuts of a dimension do not divide it.
  static Result<ShardGrid> make(std::span<const int64_t> shape, std::span<const GridAxis> axes);

  uint32_t column_count() const { return column_count_; }
  // 0 for a tensor without elements.
  uint64_t chunk_count() const { return chunk_count_; }
  // One bit per dimension that some chunk does not cover whole.
  uint64_t split_mask() const { return split_mask_; }
  // True when all columns hold equally many elements, and some.
  bool even() const { return even_; }
  // Element counts of chunks, distinct, descending.
  std::span<const int64_t> sizes() const { return sizes_; }
  // Columns that hold elements, ascending, neighbours of equal size joined.
  std::vector<ColumnRun> runs() const;

  // The column of each chunk. O(chunks).
  std::vector<uint32_t> chunk_columns() const;
  // Sizes of the parts of a dimension that is in the split mask, in order.
  std::vector<int64_t> part_sizes(int32_t dim) const;
  int64_t elements_of_column(uint32_t column) const;
  // Fills one pair per dimension.
  void box_of_column(uint32_t column, std::span<ExtentPair> box) const;

  std::span<const int64_t> shape() const { return shape_; }
  std::span<const GridAxis> axes() const { return axes_; }

 private:
  // The axes that cut one dimension, as numbers into axes_, in nest order.
  struct CutDim {
    int32_t dim = 0;
    std::vector<uint8_t> axes;
    int64_t leaves = 0;  // parts that are not empty
  };

  uint64_t leaf_count(const CutDim& cut, size_t level, int64_t size) const;
  int64_t leaf_total(const CutDim& cut, size_t level, int64_t size) const;
  // A part that is not empty, and what it adds to the number of a column.
  struct Leaf {
    int64_t size = 0;
    uint32_t column = 0;
  };
  void append_leaves(const CutDim& cut, size_t level, const Leaf& from,
                     std::vector<Leaf>* leaves) const;
  std::vector<Leaf> leaves_of(const CutDim& cut) const;
  ExtentPair extent_of(const CutDim& cut, uint32_t column) const;
  int64_t coordinate(uint32_t column, uint8_t axis) const {
    return column / column_strides_[axis] % static_cast<uint32_t>(axes_[axis].extent);
  }
  // The axes that are left, what is left of the dimension of the first, and the elements of the
  // dimensions before it.
  struct Descent {
    std::span<const uint8_t> axes;
    int64_t size = 0;
    int64_t elements = 0;
  };
  void fill(const Descent& at, uint32_t column, std::span<int64_t> elements) const;
  void collect(size_t axis, uint32_t column, int64_t elements, std::vector<ColumnRun>* runs) const;
  void find_sizes();

  std::vector<int64_t> shape_;
  std::vector<GridAxis> axes_;
  std::vector<uint32_t> column_strides_;
  std::vector<CutDim> cut_dims_;  // ascending dim
  std::vector<int64_t> sizes_;
  std::vector<bool> even_from_;  // axis -> it and all behind it cut evenly
  int64_t uncut_elements_ = 1;   // product of the other extents
  uint32_t column_count_ = 1;
  uint64_t chunk_count_ = 0;
  uint64_t split_mask_ = 0;
  bool even_ = false;
  bool nested_ = false;  // some dimension has several axes
};

}  // namespace shardwright::plan::internal

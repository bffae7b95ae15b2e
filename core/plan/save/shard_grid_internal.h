// SPDX-License-Identifier: Apache-2.0
//
// ShardGrid: the boxes of a tensor that is cut by axes, as a rule. A column is one combination of
// coordinates, numbered row-major over the axes as given; a chunk is a column whose box is not
// empty, numbered row-major by offsets as catalogs number them. The boxes are those that
// box_of_axes gives rank by rank; ShardGrid.EqualsTheEnumerationOfItsColumns holds them equal.
// Immutable after make, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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
  // count fits. O(columns).
  ShardGrid(std::span<const int64_t> shape, std::span<const GridAxis> axes);

  // 0 for a tensor without elements.
  uint64_t chunk_count() const { return chunk_count_; }
  // One bit per dimension that some chunk does not cover whole.
  uint64_t split_mask() const { return split_mask_; }
  // Columns that hold elements, ascending, neighbours of equal size joined. No chunk is larger than
  // the first.
  std::span<const ColumnRun> runs() const { return runs_; }
  // The column of each chunk. O(chunks).
  std::vector<uint32_t> chunk_columns() const;
  // Of each dimension in the split mask: the sizes of its parts in order.
  std::vector<std::vector<int64_t>> split_sizes() const;

 private:
  // Something that is not empty, and what it adds to the number of a column: a part of a dimension,
  // or the elements of a chunk.
  struct Part {
    int64_t size = 0;
    uint32_t column = 0;
  };
  std::vector<Part> chunks() const;
  void find_runs(uint32_t column_count);

  std::vector<std::vector<Part>> parts_;  // of each dimension
  std::vector<ColumnRun> runs_;
  uint64_t chunk_count_ = 1;
  uint64_t split_mask_ = 0;
};

}  // namespace shardwright::plan::internal

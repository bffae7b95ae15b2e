// SPDX-License-Identifier: Apache-2.0
//
// Which chunks of one tensor meet a wanted box. Three ways:
//   grid  the chunks are all combinations of parts, one split per split dimension, in any order
//         (rows are the case of one dimension): binary search, then arithmetic;
//   runs  chunks that lie together come together, as they are stored or along a curve: a bounding
//         box per run of chunks;
//   tree  anything else: chunks sorted into leaves of neighbours, a bounding box per node.
// Two intervals meet when each begins before the other ends: an empty one strictly inside another
// meets it, one at its edge does not. Immutable, any thread. The catalog must outlive it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/plan/catalog.h"
#include "core/plan/cover/cover_internal.h"
#include "core/plan/flat_chunks_internal.h"

namespace shardwright::plan::internal {

// Whether a chunk meets a region, one interval per split dimension of its tensor.
inline bool chunk_meets(const Catalog& catalog, const TensorRecord& tensor, uint64_t chunk,
                        const Interval* region) {
  const uint32_t count = split_count(tensor);
  for (uint32_t k = 0; k < count; ++k) {
    if (!intervals_meet(chunk_interval(catalog, tensor, chunk, k), region[k])) return false;
  }
  return true;
}

// Parts [first[k], last[k]) of each split dimension meet a region.
struct GridRange {
  std::array<uint32_t, kMaxTensorRank> first;
  std::array<uint32_t, kMaxTensorRank> last;
};

// Chunks that are a grid. Every cell holds at least one chunk; further ones are its copies.
class ChunkGrid {
 public:
  // Nothing when the chunks are no grid. At once for what the catalog says to be one; for boxes
  // linear but for sorting their begins.
  static std::optional<ChunkGrid> find(const Catalog& catalog, size_t tensor);

  uint32_t dimension_count() const { return static_cast<uint32_t>(splits_.size()); }
  // Of split dimension k.
  const DimSplit& split(uint32_t k) const { return *splits_[k]; }
  // False when no cell meets the region, one interval per split dimension.
  bool meeting(const Interval* region, GridRange* range) const;
  // Row-major number of the first cell of row `part` (one number per split dimension, the last one
  // is ignored); cells of the row follow.
  uint64_t row_begin(const std::array<uint32_t, kMaxTensorRank>& part) const;
  bool in_order() const { return cell_chunks_.empty(); }
  bool has_copies() const { return !cell_begins_.empty(); }
  // The chunks of a cell, ascending, numbers within the tensor.
  uint64_t first_chunk(uint64_t cell) const {
    return in_order() ? cell : cell_chunks_[has_copies() ? cell_begins_[cell] : cell];
  }
  std::span<const uint32_t> copies(uint64_t cell) const {
    return {cell_chunks_.data() + cell_begins_[cell], cell_begins_[cell + 1] - cell_begins_[cell]};
  }

 private:
  friend class GridFinder;
  std::vector<const DimSplit*> splits_;  // of the catalog, or own_
  std::unique_ptr<const std::vector<DimSplit>> own_;
  std::vector<uint32_t> cell_chunks_;  // by cell; empty: chunk = cell
  std::vector<uint32_t> cell_begins_;  // into cell_chunks_, with copies: one more than cells
};

// Chunks in an order in which neighbours come together, in runs of kRunLength, and runs in runs of
// as many.
class ChunkRuns {
 public:
  static constexpr uint64_t kRunLength = 8;

  // In the order in which they are stored or along a curve; nothing when looking up chunks of the
  // tensor would visit many runs in both. Linear.
  static std::optional<ChunkRuns> find(const Catalog& catalog, size_t tensor);
  // Whether meeting() gives ascending numbers.
  bool in_order() const { return order_.empty(); }
  // Appends the chunks that meet the region, one interval per split dimension.
  void meeting(const Interval* region, std::vector<uint64_t>* out) const;

 private:
  struct Level {
    size_t bound_begin = 0;  // into bounds_
    uint64_t count = 0;      // runs
  };

  ChunkRuns(const Catalog& catalog, size_t tensor, std::vector<uint32_t> order);
  // Number in the catalog of the chunk at a place of the order.
  uint64_t chunk_at(uint64_t place) const {
    return catalog_->tensors[tensor_].chunk_begin + (order_.empty() ? place : order_[place]);
  }
  void bound_chunks();
  void bound_runs(size_t level);
  bool is_good() const;
  template <typename Visit>
  void walk(size_t level, uint64_t first, const Interval* region, const Visit& visit) const;

  const Catalog* catalog_;
  size_t tensor_;
  uint32_t split_count_;
  std::vector<uint32_t> order_;   // empty: as they are stored
  bool has_empty_ = false;        // some chunk has no elements
  std::vector<Level> levels_;     // of runs of chunks first, of one run last
  std::vector<Interval> bounds_;  // split_count_ per run
};

// Nodes in preorder: the first child of a node follows it. Leaves hold at most kLeafChunks chunks.
class ChunkTree {
 public:
  static constexpr uint64_t kLeafChunks = 8;

  ChunkTree(const Catalog& catalog, size_t tensor);
  // Appends the chunks that meet the region, one interval per split dimension, in any order.
  void meeting(const Interval* region, std::vector<uint64_t>* out) const;

 private:
  struct Node {
    uint64_t begin = 0;  // into order_
    uint64_t end = 0;
    uint64_t second_child = 0;  // 0 = a leaf
  };
  // Where a node may be cut.
  struct Plane {
    bool found = false;
    uint64_t cost = 0;
    uint32_t dimension = 0;
    int64_t coordinate = 0;
  };

  uint64_t build(uint64_t begin, uint64_t end);
  uint64_t divide(uint64_t begin, uint64_t end);
  Plane best_plane(uint64_t begin, uint64_t end, uint32_t k) const;
  uint32_t widest_dimension(uint64_t begin, uint64_t end) const;
  Interval interval(uint64_t chunk, uint32_t k) const;
  void sort_boxes();
  void bound_nodes();
  static bool all_meet(const Interval* own, const Interval* region, uint32_t count);

  const TensorRecord& tensor_;
  uint32_t split_count_ = 0;
  std::array<int64_t, kMaxTensorRank> extents_;  // of the tensor in the split dimensions
  std::vector<uint64_t> order_;                  // chunks, leaf by leaf
  std::vector<Interval>
      boxes_;  // split_count_ per chunk, in that order: a search stays in few lines
  std::vector<Node> nodes_;
  std::vector<Interval> bounds_;  // split_count_ per node
};

// A grid, runs, a tree, or none of them for tensors of a few chunks, which are looked at one by
// one.
class ChunkSearch {
 public:
  ChunkSearch(const Catalog& catalog, size_t tensor);
  const ChunkGrid* grid() const { return grid_.has_value() ? &*grid_ : nullptr; }
  // The chunks that meet the region (one interval per split dimension), copies included, ascending
  // numbers in the catalog. `out` is replaced.
  void meeting(const Interval* region, std::vector<uint64_t>* out) const;
  // The chunks that share an element with the region, of copies the first one only, ascending. The
  // region is not empty; chunks are disjoint or copies of each other.
  void filling(const Interval* region, std::vector<uint64_t>* out) const;

 private:
  uint64_t common_elements(uint64_t chunk, const Interval* region) const;
  void meeting_grid(const Interval* region, std::vector<uint64_t>* out) const;

  const Catalog* catalog_;
  size_t tensor_;
  uint32_t split_count_;
  // One or none of them.
  std::optional<ChunkGrid> grid_;
  std::optional<ChunkRuns> runs_;
  std::optional<ChunkTree> tree_;
};

// Calls row(part, first cell, end) for each run of cells of the range that lie together; part: its
// place in all split dimensions but the last.
template <typename Row>
void for_each_row(const ChunkGrid& grid, const GridRange& range, const Row& row) {
  std::array<uint32_t, kMaxTensorRank> part;
  const uint32_t innermost = grid.dimension_count() - 1;
  for (uint32_t k = 0; k < innermost; ++k) part[k] = range.first[k];
  while (true) {
    const uint64_t begin = grid.row_begin(part);
    row(part, begin + range.first[innermost], begin + range.last[innermost]);
    uint32_t k = innermost;
    while (k > 0 && ++part[k - 1] == range.last[k - 1]) {
      part[k - 1] = range.first[k - 1];
      --k;
    }
    if (k == 0) return;
  }
}

// Proof that the chunks of a tensor, which need not be covered, share no element: INVALID_ARGUMENT
// naming two that do, and their places.
Status prove_disjoint(const Catalog& catalog, size_t tensor, std::string_view place_noun);

}  // namespace shardwright::plan::internal

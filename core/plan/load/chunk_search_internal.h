// SPDX-License-Identifier: Apache-2.0
//
// Which chunks of one tensor meet a wanted box. Two ways:
//   grid  the chunks are all combinations of cuts, one list of cuts per split dimension, in
//         row-major order (rows are the case of one dimension): binary search, then arithmetic.
//   tree  anything else: chunks sorted into leaves of neighbours, a bounding box per node.
// Immutable, any thread. The catalog must outlive it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/catalog.h"
#include "core/plan/cover/cover_internal.h"
#include "core/plan/flat_chunks_internal.h"

namespace shardwright::plan::internal {

// Cuts of one split dimension: begins ascending, each part ends where the next begins, the last at
// the extent.
using Cuts = std::vector<int64_t>;

// The cuts when the tensor's chunks are such a grid; empty otherwise. Linear.
std::vector<Cuts> grid_cuts(const Catalog& catalog, size_t tensor);

// Nodes in preorder: the first child of a node follows it. Leaves hold at most kLeafChunks chunks.
class ChunkTree {
 public:
  static constexpr uint64_t kLeafChunks = 8;

  ChunkTree(const Catalog& catalog, size_t tensor);
  // Appends the chunks that share an element with the region, one interval per split dimension, in
  // any order.
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
  static bool share_element(const Interval* own, const Interval* region, uint32_t count);

  const Catalog& catalog_;
  const TensorRecord& tensor_;
  uint32_t split_count_ = 0;
  std::vector<uint64_t> order_;  // chunks, leaf by leaf
  std::vector<Interval>
      boxes_;  // split_count_ per chunk, in that order: a search stays in few lines
  std::vector<Node> nodes_;
  std::vector<Interval> bounds_;  // split_count_ per node
};

// A grid, a tree, or neither for tensors of a few chunks, which are looked at one by one.
class ChunkSearch {
 public:
  ChunkSearch(const Catalog& catalog, size_t tensor);
  std::vector<uint64_t> meeting(const Box& wanted) const;

 private:
  void meeting_grid(const Interval* region, std::vector<uint64_t>* out) const;

  const Catalog* catalog_;
  size_t tensor_;
  std::vector<Cuts> cuts_;
  std::vector<ChunkTree> tree_;  // one or none
};

}  // namespace shardwright::plan::internal

// SPDX-License-Identifier: Apache-2.0
//
// Which chunks of one tensor meet a wanted box. Two ways:
//   grid  the chunks are all combinations of cuts, one list of cuts per split dimension, in
//   row-major order (rows are
//         the case of one dimension): binary search per dimension, then arithmetic.
//   tree  anything else: chunks sorted into leaves of neighbours, a bounding box per node, children
//   found by arithmetic.
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

// Node k of a complete binary tree in level order; leaves hold kLeafChunks chunks in the order of
// the tree.
class ChunkTree {
 public:
  static constexpr uint64_t kLeafChunks = 8;

  ChunkTree(const Catalog& catalog, size_t tensor);
  // Appends the chunks that share an element with the region, one interval per split dimension, in
  // any order.
  void meeting(const Interval* region, std::vector<uint64_t>* out) const;

 private:
  void build(uint64_t node, uint64_t begin, uint64_t end);
  Interval interval(uint64_t chunk, uint32_t k) const;
  bool chunk_meets(uint64_t chunk, const Interval* region) const;
  bool node_meets(uint64_t node, const Interval* region) const;
  uint32_t widest_dimension(uint64_t begin, uint64_t end) const;

  const Catalog& catalog_;
  const TensorRecord& tensor_;
  uint32_t split_count_ = 0;
  std::vector<uint64_t> order_;  // chunks, leaf by leaf
  std::vector<Interval>
      bounds_;  // split_count_ per node; empty intervals for nodes that are not there
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

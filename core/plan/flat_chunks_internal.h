// SPDX-License-Identifier: Apache-2.0
//
// Flat access to chunks: inner loops of the planner read offsets and sizes of the split dimensions
// straight from the columns and make no Box. The catalog was built by CatalogBuilder or passed by
// check_catalog. Pure functions over values, any thread.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "core/base/limits.h"
#include "core/layout/box_bytes.h"
#include "core/plan/catalog.h"
#include "core/plan/local_plan.h"

namespace shardwright::plan::internal {

// The split dimensions of a tensor, first to last. Only the first count elements are set: one of
// these is made per tensor, and clearing a kilobyte each time would show.
struct SplitDims {
  uint32_t count = 0;
  std::array<uint8_t, kMaxTensorRank> dims;
  std::array<int64_t, kMaxTensorRank> extents;
  int64_t unsplit_elements = 1;  // product of the other extents
};

inline SplitDims split_dims(std::span<const int64_t> shape, uint64_t split_mask) {
  SplitDims split;
  for (size_t d = 0; d < shape.size(); ++d) {
    if ((split_mask >> d & 1) != 0) {
      split.dims[split.count] = static_cast<uint8_t>(d);
      split.extents[split.count++] = shape[d];
    } else {
      // Of a shape that is not proved yet the product may pass 2^63.
      split.unsplit_elements = static_cast<int64_t>(static_cast<uint64_t>(split.unsplit_elements) *
                                                    static_cast<uint64_t>(shape[d]));
    }
  }
  return split;
}

inline SplitDims split_dims(const Catalog& catalog, size_t tensor) {
  return split_dims(catalog.shape(tensor), catalog.tensors[tensor].split_mask);
}

// One bit per dimension that some box does not cover whole. The boxes lie inside the shape.
uint64_t split_mask_of(std::span<const int64_t> shape,
                       std::span<const CatalogBuilder::Chunk> chunks);

inline uint32_t split_count(const TensorRecord& tensor) {
  return static_cast<uint32_t>(std::popcount(tensor.split_mask));
}

// Pairs in the side column per chunk of a tensor with that many split dimensions.
inline uint64_t more_per_chunk(uint32_t split_count) {
  return split_count > 2 ? split_count - 2 : 0;
}

// Where a tensor's columns begin that stands behind those that were placed.
struct TensorBegins {
  uint64_t shape = 0;
  uint64_t chunk = 0;
  uint64_t grid = 0;
  uint64_t box = 0;
  uint64_t more = 0;

  void place(TensorRecord* tensor) {
    tensor->shape_begin = std::exchange(shape, shape + tensor->dimension_count);
    tensor->chunk_begin = std::exchange(chunk, chunk + tensor->chunk_count);
    if (tensor->is_grid()) {
      tensor->grid_begin = std::exchange(grid, grid + split_count(*tensor));
    } else {
      tensor->box_begin = std::exchange(box, box + tensor->chunk_count);
      const uint64_t pairs = tensor->chunk_count * more_per_chunk(split_count(*tensor));
      tensor->more_begin = std::exchange(more, more + pairs);
    }
  }
};

// The record of a chunk that is no part of a grid.
inline const ChunkRecord& box_record(const Catalog& catalog, const TensorRecord& tensor,
                                     uint64_t chunk) {
  return catalog.boxes[tensor.box_begin + (chunk - tensor.chunk_begin)];
}

// chunk_pair of a grid. O(split dimensions).
ExtentPair grid_pair(const Catalog& catalog, const TensorRecord& tensor, uint64_t chunk,
                     uint32_t k);

// Split k of a grid.
inline const DimSplit& split_of(const Catalog& catalog, const TensorRecord& tensor, uint32_t k) {
  return catalog.splits[catalog.grids[tensor.grid_begin + k]];
}

// chunk_pair of a tensor that is no grid.
inline ExtentPair box_pair(const Catalog& catalog, const TensorRecord& tensor, uint64_t chunk,
                           uint32_t k) {
  const ChunkRecord& record = box_record(catalog, tensor, chunk);
  if (k == 0) return {record.offset0, record.size0};
  if (k == 1) return {record.offset1, record.size1};
  const uint64_t further = (chunk - tensor.chunk_begin) * (split_count(tensor) - 2) + (k - 2);
  return catalog.more[tensor.more_begin + further];
}

// Offset and size of a chunk in split dimension k < split_count(tensor).
inline ExtentPair chunk_pair(const Catalog& catalog, const TensorRecord& tensor, uint64_t chunk,
                             uint32_t k) {
  return tensor.is_grid() ? grid_pair(catalog, tensor, chunk, k)
                          : box_pair(catalog, tensor, chunk, k);
}

// Of a record from outside: whether it has no pair of a dimension that is not split.
inline bool only_split_pairs(const ChunkRecord& record, const SplitDims& split) {
  return (split.count > 0 || (record.offset0 | record.size0) == 0) &&
         (split.count > 1 || (record.offset1 | record.size1) == 0);
}
inline bool is_inside(const ExtentPair& pair, int64_t extent) {
  return pair.offset >= 0 && pair.size >= 0 && pair.offset <= extent &&
         pair.size <= extent - pair.offset;
}

// The box, with all dimensions, of which pair_at(k) is the pair in split dimension k.
template <typename PairAt>
Box box_of_pairs(std::span<const int64_t> shape, const SplitDims& split, const PairAt& pair_at) {
  Box box = whole_box(shape);
  for (uint32_t k = 0; k < split.count; ++k) {
    const ExtentPair pair = pair_at(k);
    box.offsets[split.dims[k]] = pair.offset;
    box.sizes[split.dims[k]] = pair.size;
  }
  return box;
}
inline Box chunk_box(const Catalog& catalog, size_t tensor, const SplitDims& split,
                     uint64_t chunk) {
  const auto pair_at = [&](uint32_t k) {
    return chunk_pair(catalog, catalog.tensors[tensor], chunk, k);
  };
  return box_of_pairs(catalog.shape(tensor), split, pair_at);
}

// Place of a chunk, see ChunkRecord.
inline uint32_t chunk_place(const Catalog& catalog, const TensorRecord& tensor, uint64_t chunk) {
  return tensor.is_grid() ? catalog.rank_maps[tensor.rank_map][chunk - tensor.chunk_begin]
                          : box_record(catalog, tensor, chunk).place;
}

inline int64_t chunk_elements(const Catalog& catalog, const TensorRecord& tensor,
                              const SplitDims& split, uint64_t chunk) {
  int64_t elements = split.unsplit_elements;
  if (elements == 0) return 0;
  for (uint32_t k = 0; k < split.count; ++k) {
    const int64_t size = chunk_pair(catalog, tensor, chunk, k).size;
    if (size == 0) return 0;
    elements *= size;
  }
  return elements;
}

// Puts the box of `count` split dimensions into a record: pair_at(k) is its pair in dimension k, of
// which the third and further ones go into the side column.
template <typename PairAt>
void pack_pairs(uint32_t count, const PairAt& pair_at, ChunkRecord* record,
                std::vector<ExtentPair>* more) {
  if (count > 0) {
    const ExtentPair pair = pair_at(0U);
    record->offset0 = pair.offset;
    record->size0 = pair.size;
  }
  if (count > 1) {
    const ExtentPair pair = pair_at(1U);
    record->offset1 = pair.offset;
    record->size1 = pair.size;
  }
  for (uint32_t k = 2; k < count; ++k) more->push_back(pair_at(k));
}
// The same of a Box.
inline void pack_box(const SplitDims& split, const Box& box, ChunkRecord* record,
                     std::vector<ExtentPair>* more) {
  const auto pair_at = [&](uint32_t k) -> ExtentPair {
    return {box.offsets[split.dims[k]], box.sizes[split.dims[k]]};
  };
  pack_pairs(split.count, pair_at, record, more);
}

// Of box `box` of a rank's list: offset and size in its split dimension k.
inline ExtentPair list_pair(const PartView& part, const BoxList& list, uint32_t box, uint32_t k) {
  const ChunkRecord& record = part.boxes[list.begin + box];
  if (k == 0) return {record.offset0, record.size0};
  if (k == 1) return {record.offset1, record.size1};
  const auto further = static_cast<uint64_t>(std::popcount(list.split_mask)) - 2;
  return part.more[list.more_begin + box * further + (k - 2)];
}

// With all dimensions.
inline Box list_box(const PartView& part, const BoxList& list, uint32_t box,
                    std::span<const int64_t> shape) {
  return box_of_pairs(shape, split_dims(shape, list.split_mask),
                      [&](uint32_t k) { return list_pair(part, list, box, k); });
}

}  // namespace shardwright::plan::internal

// SPDX-License-Identifier: Apache-2.0
//
// The slow way to say who holds what: explicit lists of indices and elements, cut one after the
// other as torch.distributed.tensor cuts tensors. Shares no code with core/layout.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/layout/layout.h"

namespace shardwright::test {

using IndexList = std::vector<int64_t>;

// The given part when a list is cut into lists of ceil(size / parts).
inline IndexList chunk_of_list(const IndexList& list, int64_t parts, int64_t part) {
  const auto size = static_cast<int64_t>(list.size());
  const int64_t step = (size + parts - 1) / parts;
  IndexList kept;
  for (int64_t i = part * step; i < std::min(size, (part + 1) * step); ++i)
    kept.push_back(list[static_cast<size_t>(i)]);
  return kept;
}

inline IndexList strided_chunk_of_list(const IndexList& list, int64_t factor, int64_t parts,
                                       int64_t part) {
  IndexList kept;
  for (int64_t f = 0; f < factor; ++f) {
    const IndexList chunk = chunk_of_list(chunk_of_list(list, factor, f), parts, part);
    kept.insert(kept.end(), chunk.begin(), chunk.end());
  }
  return kept;
}

inline IndexList all_below(int64_t end) {
  IndexList list(static_cast<size_t>(end));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

// What the rank at one position of a mesh holds.
struct DenseHolding {
  std::vector<IndexList> dims;  // indices per dimension, flat cuts aside
  IndexList elements;           // row-major numbers of the global elements, in local order
};

inline DenseHolding dense_holding(const Dims& mesh, const std::vector<Cut>& cuts, const Dims& shape,
                                  int64_t position) {
  IndexList coordinates(mesh.size());
  for (size_t axis = mesh.size(); axis-- > 0; position /= mesh[axis])
    coordinates[axis] = position % mesh[axis];
  DenseHolding holding;
  for (size_t d = 0; d < shape.size(); ++d) {
    IndexList list = all_below(shape[d]);
    for (const Cut& cut : cuts) {
      const auto axis = static_cast<size_t>(cut.axis);
      const auto rank = static_cast<int32_t>(shape.size());
      if (cut.dim == kFlatDim || static_cast<size_t>(cut.dim < 0 ? cut.dim + rank : cut.dim) != d)
        continue;
      list = strided_chunk_of_list(list, cut.factor, mesh[axis], coordinates[axis]);
    }
    holding.dims.push_back(list);
  }
  holding.elements = {0};
  for (size_t d = 0; d < shape.size(); ++d) {
    IndexList next;
    for (const int64_t outer : holding.elements)
      for (const int64_t index : holding.dims[d]) next.push_back(outer * shape[d] + index);
    holding.elements = next;
  }
  for (const Cut& cut : cuts) {
    if (cut.dim != kFlatDim) continue;
    const auto axis = static_cast<size_t>(cut.axis);
    holding.elements = chunk_of_list(holding.elements, mesh[axis], coordinates[axis]);
  }
  return holding;
}

// Row-major number in `shape` of element `number` of a box.
inline int64_t element_of_box(const Box& box, const Dims& shape, int64_t number) {
  int64_t flat = 0;
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    flat += (box.offsets[d] + number % box.sizes[d]) * step;
    number /= box.sizes[d];
    step *= shape[d];
  }
  return flat;
}

inline constexpr int64_t kUnfilled = -1;
inline constexpr int64_t kFilledTwice = -2;

// The local tensor as the pieces describe it: the number of the global element in each place.
inline IndexList filled_local(const std::vector<Piece>& pieces, const Dims& shape,
                              const Dims& local_shape) {
  IndexList local(static_cast<size_t>(element_count_of(local_shape)), kUnfilled);
  for (const Piece& piece : pieces) {
    Box window{Dims(local_shape.size(), 0), piece.box.sizes};
    int64_t rest = piece.local_offset_elements;
    for (size_t d = local_shape.size(); d-- > 0;) {
      const int64_t extent = std::max<int64_t>(local_shape[d], 1);
      window.offsets[d] = rest % extent;
      rest /= extent;
    }
    const bool is_run = local_shape.size() != shape.size();
    for (int64_t i = 0; i < box_element_count(piece.box); ++i) {
      const int64_t place =
          is_run ? piece.local_offset_elements + i : element_of_box(window, local_shape, i);
      int64_t& slot = local.at(static_cast<size_t>(place));
      slot = slot == kUnfilled ? element_of_box(piece.box, shape, i) : kFilledTwice;
    }
  }
  return local;
}

}  // namespace shardwright::test

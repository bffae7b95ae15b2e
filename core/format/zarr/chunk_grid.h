// SPDX-License-Identifier: Apache-2.0
//
// ChunkGrid: the chunks of an array of zarr, numbered row-major, and the names that their files
// have: "1.0" is the second in the first dimension, "0" the only one of a scalar. Immutable, any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/format/zarr/array_header.h"
#include "core/layout/box.h"

namespace shardwright::format::zarr {

class ChunkGrid {
 public:
  // header: decoded; outlives it.
  explicit ChunkGrid(const ArrayHeader& header);

  uint64_t count() const { return count_; }  // 0 of an array without elements
  uint64_t file_bytes() const { return file_bytes_; }
  // Place of the chunk of that name among the chunks; it may lie outside of the grid. nullopt for a
  // name that no chunk of the array has.
  std::optional<Dims> index_of(std::string_view name) const;
  // nullopt outside of the grid.
  std::optional<uint64_t> number_of(const Dims& index) const;
  std::string name_of(uint64_t number) const;
  // Elements of the array that the chunk has; fewer than its file at an edge.
  Box box_of(uint64_t number) const;

 private:
  Dims index_at(uint64_t number) const;

  const ArrayHeader& header_;
  Dims extents_;  // chunks in each dimension
  uint64_t count_ = 0;
  uint64_t file_bytes_ = 0;
};

}  // namespace shardwright::format::zarr

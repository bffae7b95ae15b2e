// SPDX-License-Identifier: Apache-2.0
//
// The picture of how a tensor is cut: its chunks over at most two of the dimensions that they cut.
// Dimensions beyond them lie behind each other in the cells, and long rows are drawn together. Pure
// function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardwright::cli {

inline constexpr size_t kMaxPictureSide = 24;  // cells

// The chunks of a tensor as columns with one value per chunk.
struct ChunkColumns {
  std::vector<int64_t> dims;                  // that some chunk does not cover whole, ascending
  std::vector<std::vector<int64_t>> offsets;  // one column per element of dims
  std::vector<uint64_t> ranks;                // who writes it
  std::vector<uint64_t> holders;              // how many ranks hold it
};

// Chunks under one square.
struct PictureCell {
  uint64_t chunks = 0;  // 0 = nothing lies here
  uint64_t first_rank = 0;
  uint64_t last_rank = 0;
  uint64_t fewest_holders = 0;
  uint64_t most_holders = 0;
};

struct ChunkPicture {
  int64_t row_dim = -1;     // dimension that goes down, -1 = it is not cut
  int64_t column_dim = -1;  // dimension that goes to the right
  size_t row_parts = 1;     // parts of these dimensions
  size_t column_parts = 1;
  size_t rows = 1;  // cells, at most kMaxPictureSide
  size_t columns = 1;
  std::vector<PictureCell> cells;  // row-major
};

ChunkPicture draw_chunks(const ChunkColumns& chunks);

}  // namespace shardwright::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/chunk_picture.h"

#include <algorithm>
#include <utility>

namespace shardwright::cli {
namespace {

// Parts of one dimension: the offsets at which chunks begin.
class DimensionParts {
 public:
  DimensionParts() = default;
  DimensionParts(int64_t dim, const std::vector<int64_t>& offsets)
      : dim_(dim), of_chunks_(&offsets), begins_(offsets) {
    std::ranges::sort(begins_);
    const auto rest = std::ranges::unique(begins_);
    begins_.erase(rest.begin(), rest.end());
  }
  int64_t dim() const { return dim_; }
  size_t parts() const { return std::max<size_t>(begins_.size(), 1); }
  size_t cells() const { return std::min(parts(), kMaxPictureSide); }
  size_t cell_of(size_t chunk) const {
    if (dim_ < 0) return 0;
    const auto at = std::ranges::lower_bound(begins_, (*of_chunks_)[chunk]);
    return static_cast<size_t>(at - begins_.begin()) * cells() / parts();
  }

 private:
  int64_t dim_ = -1;
  const std::vector<int64_t>* of_chunks_ = nullptr;
  std::vector<int64_t> begins_;
};

void add_chunk(uint64_t rank, uint64_t holders, PictureCell* cell) {
  const bool first = cell->chunks++ == 0;
  cell->first_rank = first ? rank : std::min(cell->first_rank, rank);
  cell->last_rank = first ? rank : std::max(cell->last_rank, rank);
  cell->fewest_holders = first ? holders : std::min(cell->fewest_holders, holders);
  cell->most_holders = std::max(cell->most_holders, holders);
}

}  // namespace

ChunkPicture draw_chunks(const ChunkColumns& chunks) {
  DimensionParts rows;
  DimensionParts columns;
  for (size_t d = 0; d < chunks.dims.size() && columns.dim() < 0; ++d) {
    DimensionParts parts(chunks.dims[d], chunks.offsets[d]);
    if (parts.parts() < 2) continue;
    (rows.dim() < 0 ? rows : columns) = std::move(parts);
  }
  if (rows.dim() > 0 && columns.dim() < 0) std::swap(rows, columns);  // columns are cut, not rows
  ChunkPicture picture;
  picture.row_dim = rows.dim();
  picture.column_dim = columns.dim();
  picture.row_parts = rows.parts();
  picture.column_parts = columns.parts();
  picture.rows = rows.cells();
  picture.columns = columns.cells();
  picture.cells.resize(picture.rows * picture.columns);
  for (size_t c = 0; c < chunks.ranks.size(); ++c) {
    PictureCell& cell = picture.cells[rows.cell_of(c) * picture.columns + columns.cell_of(c)];
    add_chunk(chunks.ranks[c], chunks.holders[c], &cell);
  }
  return picture;
}

}  // namespace shardwright::cli

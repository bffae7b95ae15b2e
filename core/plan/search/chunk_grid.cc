// SPDX-License-Identifier: Apache-2.0
//
// Recognises chunks that are a grid. Chunks in row-major order are read as such: the last offset
// changes fastest, so the cuts of dimension k are read along the chunks whose index is a multiple
// of the number of parts of all later dimensions, and every chunk is compared with what the cuts
// say. Otherwise the distinct begins of each dimension are collected, as long as they can still be
// those of a grid, and every chunk is put into its cell.
#include <algorithm>
#include <bit>

#include "core/plan/search/chunk_search_internal.h"
#include "core/plan/search/coordinate_set_internal.h"

namespace shardwright::plan::internal {

class GridFinder {
  static constexpr uint64_t kFewBegins = 64;

 public:
  GridFinder(const Catalog& catalog, size_t tensor)
      : catalog_(catalog),
        tensor_(catalog.tensors[tensor]),
        split_(split_dims(catalog, tensor)),
        count_(tensor_.chunk_count) {}

  std::optional<ChunkGrid> run() {
    if (split_.count == 0 || count_ == 0 || count_ >= UINT32_MAX) return std::nullopt;
    if (is_row_major() || fills_cells()) return std::move(grid_);
    return std::nullopt;
  }

 private:
  ExtentPair pair(uint64_t chunk, uint32_t k) const {
    return chunk_pair(catalog_, tensor_, tensor_.chunk_begin + chunk, k);
  }

  // Reads cuts of dimension k at every stride-th chunk until the offset falls back or the chunks
  // end; appends the extent.
  std::vector<int64_t> read_cuts(uint32_t k, uint64_t stride) const {
    std::vector<int64_t> cuts;
    if (stride == 1) cuts.reserve(split_.count == 1 ? count_ + 1 : 0);
    for (uint64_t c = 0; c < count_; c += stride) {
      const int64_t offset = pair(c, k).offset;
      if (!cuts.empty() && offset <= cuts.back()) break;
      cuts.push_back(offset);
    }
    cuts.push_back(split_.extents[k]);
    return cuts;
  }

  bool is_row_major() {
    grid_.cuts_.assign(split_.count, {});
    uint64_t stride = 1;
    for (uint32_t k = split_.count; k-- > 0;) {
      std::vector<int64_t>& cuts = grid_.cuts_[k];
      cuts = read_cuts(k, stride);
      const uint64_t parts = cuts.size() - 1;
      if (cuts[0] != 0 || cuts[parts] <= cuts[parts - 1] || count_ % (stride * parts) != 0)
        return false;
      stride *= parts;
    }
    return stride == count_ && every_chunk_fits();
  }

  // Whether each chunk is what the cuts say of its place in row-major order.
  bool every_chunk_fits() const {
    std::array<uint32_t, kMaxTensorRank> part;
    for (uint32_t k = 0; k < split_.count; ++k) part[k] = 0;
    const uint32_t last = split_.count - 1;
    for (uint64_t c = 0; c < count_; ++c) {
      for (uint32_t k = 0; k < split_.count; ++k) {
        const ExtentPair own = pair(c, k);
        const int64_t* cut = &grid_.cuts_[k][part[k]];
        if (own.offset != cut[0] || own.offset + own.size != cut[1]) return false;
      }
      for (uint32_t k = last; ++part[k] == grid_.cuts_[k].size() - 1 && k > 0; --k) part[k] = 0;
    }
    return true;
  }

  // Chunks in any order, maybe with copies.
  bool fills_cells() {
    std::vector<CoordinateSet> begins(split_.count);
    if (!collect(&begins)) return false;
    const uint64_t cells = cells_of(begins);
    for (uint32_t k = 0; k < split_.count; ++k) {
      grid_.cuts_[k] = begins[k].sort();
      grid_.cuts_[k].push_back(split_.extents[k]);
      const std::vector<int64_t>& cuts = grid_.cuts_[k];
      if (cuts[0] != 0 || cuts[cuts.size() - 1] <= cuts[cuts.size() - 2]) return false;
    }
    return cells == count_ ? place_once(begins) : place_copies(begins, cells);
  }

  // Stops as soon as the begins have more cells than there are chunks.
  bool collect(std::vector<CoordinateSet>* begins) const {
    if (split_.count == 1) {
      CoordinateSet& only = (*begins)[0];
      only.reserve(count_);
      for (uint64_t c = 0; c < count_; ++c) only.insert(pair(c, 0).offset);
      return true;
    }
    for (CoordinateSet& each : *begins) each.reserve(kFewBegins);
    for (uint64_t c = 0; c < count_; ++c) {
      bool more = false;
      for (uint32_t k = 0; k < split_.count; ++k) more |= (*begins)[k].insert(pair(c, k).offset);
      if (more && cells_of(*begins) > count_) return false;
    }
    return true;
  }

  // Of all combinations; what is above count_ is not exact.
  uint64_t cells_of(const std::vector<CoordinateSet>& begins) const {
    uint64_t cells = 1;
    for (const CoordinateSet& each : begins) {
      cells *= each.size();
      if (cells > count_) break;
    }
    return cells;
  }

  // Cell of a chunk, or nothing when it is no cell.
  std::optional<uint64_t> cell_of(const std::vector<CoordinateSet>& begins, uint64_t chunk) const {
    uint64_t cell = 0;
    for (uint32_t k = 0; k < split_.count; ++k) {
      const ExtentPair own = pair(chunk, k);
      const uint32_t part = begins[k].rank_of(own.offset);
      if (own.offset + own.size != grid_.cuts_[k][part + 1]) return std::nullopt;
      cell = cell * begins[k].size() + part;
    }
    return cell;
  }

  bool place_once(const std::vector<CoordinateSet>& begins) {
    grid_.cell_chunks_.assign(count_, UINT32_MAX);
    for (uint64_t c = 0; c < count_; ++c) {
      const std::optional<uint64_t> cell = cell_of(begins, c);
      if (!cell.has_value() || grid_.cell_chunks_[*cell] != UINT32_MAX) return false;
      grid_.cell_chunks_[*cell] = static_cast<uint32_t>(c);
    }
    return true;
  }

  bool place_copies(const std::vector<CoordinateSet>& begins, uint64_t cells) {
    std::vector<uint32_t> cell_of_chunk(count_);
    std::vector<uint32_t>& first = grid_.cell_begins_;
    first.assign(cells + 1, 0);
    for (uint64_t c = 0; c < count_; ++c) {
      const std::optional<uint64_t> cell = cell_of(begins, c);
      if (!cell.has_value()) return false;
      cell_of_chunk[c] = static_cast<uint32_t>(*cell);
      ++first[*cell + 1];
    }
    if (std::find(first.begin() + 1, first.end(), 0U) != first.end()) return false;  // a hole
    for (uint64_t cell = 0; cell < cells; ++cell) first[cell + 1] += first[cell];
    std::vector<uint32_t> next(first.begin(), first.end() - 1);
    grid_.cell_chunks_.resize(count_);
    for (uint64_t c = 0; c < count_; ++c) {
      grid_.cell_chunks_[next[cell_of_chunk[c]]++] = static_cast<uint32_t>(c);
    }
    return true;
  }

  const Catalog& catalog_;
  const TensorRecord& tensor_;
  const SplitDims split_;
  const uint64_t count_;
  ChunkGrid grid_;
};

std::optional<ChunkGrid> ChunkGrid::find(const Catalog& catalog, size_t tensor) {
  return GridFinder(catalog, tensor).run();
}

bool ChunkGrid::meeting(const Interval* region, GridRange* range) const {
  for (uint32_t k = 0; k < dimension_count(); ++k) {
    const std::vector<int64_t>& cuts = cuts_[k];
    const auto begins_end = cuts.end() - 1;
    // Ends of parts are the cuts from the second on.
    const auto first = std::upper_bound(cuts.begin() + 1, cuts.end(), region[k].begin);
    const auto last = std::lower_bound(cuts.begin(), begins_end, region[k].end);
    range->first[k] = static_cast<uint32_t>(first - (cuts.begin() + 1));
    range->last[k] = static_cast<uint32_t>(last - cuts.begin());
    if (range->first[k] >= range->last[k]) return false;
  }
  return true;
}

uint64_t ChunkGrid::row_begin(const std::array<uint32_t, kMaxTensorRank>& part) const {
  uint64_t index = 0;
  for (uint32_t k = 0; k + 1 < dimension_count(); ++k)
    index = (index + part[k]) * (cuts_[k + 1].size() - 1);
  return index;
}

}  // namespace shardwright::plan::internal

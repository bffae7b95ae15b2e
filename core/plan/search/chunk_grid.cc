// SPDX-License-Identifier: Apache-2.0
//
// Chunks as a grid: those that the catalog says to be one, boxes in row-major order, and boxes in
// any order, maybe with copies. Of these the distinct begins of each dimension are collected, as
// long as they can still be those of a grid, and every box is put into its cell.
#include <algorithm>
#include <bit>

#include "core/base/sort_by_key.h"
#include "core/plan/grid_reader_internal.h"
#include "core/plan/search/chunk_search_internal.h"

namespace shardwright::plan::internal {
namespace {

// The distinct begins of one dimension, numbered as they come, and the place of each among them in
// ascending order. One probe of one table says the number or gives it: chunks in any order ask it
// for every dimension of every chunk.
class Begins {
 public:
  void reserve(uint64_t count) {
    slots_.assign(std::bit_ceil(std::max<uint64_t>(2 * count, kFewSlots)), Slot());
    begins_.reserve(slots_.size() / 2);
    shift_ = 64 - static_cast<uint32_t>(std::countr_zero(slots_.size()));
    for (uint32_t number = 0; number < size(); ++number)
      *slot_of(begins_[number]) = {begins_[number], number};
  }
  uint32_t number_of(int64_t begin) {
    if (2 * size() >= slots_.size()) reserve(2 * size());
    Slot* slot = slot_of(begin);
    if (slot->begin == kFree) {
      *slot = {begin, static_cast<uint32_t>(size())};
      begins_.push_back(begin);
    }
    return slot->number;
  }
  uint64_t size() const { return begins_.size(); }

  // The begins in ascending order; from then on place_of answers and nothing is numbered.
  std::vector<int64_t> sort() {
    places_.resize(size());
    std::vector<Keyed> sorted;
    sorted.reserve(size());
    for (const int64_t begin : begins_)
      sorted.push_back({static_cast<uint64_t>(begin), static_cast<uint32_t>(sorted.size())});
    sort_by_key(&sorted);
    std::vector<int64_t> begins = begins_;
    for (uint32_t i = 0; i < sorted.size(); ++i) {
      begins[i] = static_cast<int64_t>(sorted[i].key);
      places_[sorted[i].number] = i;
    }
    return begins;
  }
  uint32_t place_of(uint32_t number) const { return places_[number]; }

 private:
  static constexpr int64_t kFree = -1;
  static constexpr uint64_t kFewSlots = 128;
  struct Slot {
    int64_t begin = kFree;
    uint32_t number = 0;
  };
  Slot* slot_of(int64_t begin) {
    // The highest bits of this product lie far apart for begins at equal distances.
    uint64_t slot = (static_cast<uint64_t>(begin) * 0x9E3779B97F4A7C15) >> shift_;
    while (slots_[slot].begin != begin && slots_[slot].begin != kFree)
      slot = (slot + 1) & (slots_.size() - 1);
    return &slots_[slot];
  }

  std::vector<Slot> slots_;  // a power of two, at most half of them taken
  uint32_t shift_ = 0;
  std::vector<int64_t> begins_;
  std::vector<uint32_t> places_;
};

}  // namespace

class GridFinder {
 public:
  GridFinder(const Catalog& catalog, size_t tensor)
      : catalog_(catalog),
        number_(tensor),
        tensor_(catalog.tensors[tensor]),
        split_(split_dims(catalog, tensor)),
        count_(tensor_.chunk_count) {}

  std::optional<ChunkGrid> run() {
    if (split_.count == 0 || count_ == 0 || count_ >= UINT32_MAX) return std::nullopt;
    if (tensor_.is_grid()) {
      for (uint32_t k = 0; k < split_.count; ++k)
        grid_.splits_.push_back(&split_of(catalog_, tensor_, k));
      return std::move(grid_);
    }
    if (!is_row_major() && !fills_cells()) return std::nullopt;
    grid_.own_ = std::make_unique<std::vector<DimSplit>>(std::move(splits_));
    for (const DimSplit& split : *grid_.own_) grid_.splits_.push_back(&split);
    return std::move(grid_);
  }

 private:
  Interval interval(uint64_t chunk, uint32_t k) const {
    return chunk_interval(catalog_, tensor_, tensor_.chunk_begin + chunk, k);
  }

  bool is_row_major() {
    GridReader reader(catalog_);
    if (!reader.read(number_)) return false;
    for (uint32_t k = 0; k < split_.count; ++k)
      splits_.push_back(DimSplit::of_sizes(reader.sizes(k)));
    return true;
  }

  bool fills_cells() {
    std::vector<Begins> begins(split_.count);
    if (!collect(&begins)) return false;
    const uint64_t cells = cells_of(begins);
    for (uint32_t k = 0; k < split_.count; ++k) {
      std::vector<int64_t>& cuts = cuts_.emplace_back(begins[k].sort());
      cuts.push_back(split_.extents[k]);
      if (cuts[0] != 0 || cuts[cuts.size() - 1] <= cuts[cuts.size() - 2]) return false;
      std::vector<int64_t> sizes;
      for (size_t i = 1; i < cuts.size(); ++i) sizes.push_back(cuts[i] - cuts[i - 1]);
      splits_.push_back(DimSplit::of_sizes(sizes));
    }
    return cells == count_ ? place_once(begins) : place_copies(begins, cells);
  }

  // Stops as soon as the begins have more cells than there are chunks.
  bool collect(std::vector<Begins>* begins) {
    numbers_.reserve(count_);
    if (split_.count == 1) begins->front().reserve(count_);
    for (uint64_t c = 0; c < count_; ++c) {
      bool more = false;
      for (uint32_t k = 0; k < split_.count; ++k) {
        Begins& own = (*begins)[k];
        const uint64_t known = own.size();
        numbers_.push_back(own.number_of(interval(c, k).begin));
        more |= own.size() > known;
      }
      if (more && split_.count > 1 && cells_of(*begins) > count_) return false;
    }
    return true;
  }

  // Of all combinations; what is above count_ is not exact.
  uint64_t cells_of(const std::vector<Begins>& begins) const {
    uint64_t cells = 1;
    for (const Begins& each : begins) {
      cells *= each.size();
      if (cells > count_) break;
    }
    return cells;
  }

  // Cell of a chunk, or nothing when it is no cell.
  std::optional<uint64_t> cell_of(const std::vector<Begins>& begins, uint64_t chunk) const {
    uint64_t cell = 0;
    for (uint32_t k = 0; k < split_.count; ++k) {
      const Interval own = interval(chunk, k);
      const uint32_t part = begins[k].place_of(numbers_[chunk * split_.count + k]);
      if (own.end != cuts_[k][part + 1]) return std::nullopt;
      cell = cell * begins[k].size() + part;
    }
    return cell;
  }

  bool place_once(const std::vector<Begins>& begins) {
    grid_.cell_chunks_.assign(count_, UINT32_MAX);
    for (uint64_t c = 0; c < count_; ++c) {
      const std::optional<uint64_t> cell = cell_of(begins, c);
      if (!cell.has_value() || grid_.cell_chunks_[*cell] != UINT32_MAX) return false;
      grid_.cell_chunks_[*cell] = static_cast<uint32_t>(c);
    }
    return true;
  }

  bool place_copies(const std::vector<Begins>& begins, uint64_t cells) {
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
  const size_t number_;
  const TensorRecord& tensor_;
  const SplitDims split_;
  const uint64_t count_;
  std::vector<uint32_t> numbers_;           // of each chunk its begins, one per dimension
  std::vector<std::vector<int64_t>> cuts_;  // begins of parts, then the extent
  std::vector<DimSplit> splits_;
  ChunkGrid grid_;
};

std::optional<ChunkGrid> ChunkGrid::find(const Catalog& catalog, size_t tensor) {
  return GridFinder(catalog, tensor).run();
}

bool ChunkGrid::meeting(const Interval* region, GridRange* range) const {
  for (uint32_t k = 0; k < dimension_count(); ++k) {
    const DimSplit& own = split(k);
    const auto [begin, end] = common_of(region[k], {0, own.extent()});
    // An empty region meets the part that it lies strictly inside of.
    if (begin > end || (begin == end && (begin == 0 || begin == own.extent()))) return false;
    const uint64_t first = own.part_at(std::min(begin, own.extent() - 1));
    const uint64_t last = begin == end ? first : own.part_at(end - 1);
    if (begin == end && own[first].begin == begin) return false;
    range->first[k] = static_cast<uint32_t>(first);
    range->last[k] = static_cast<uint32_t>(last + 1);
  }
  return true;
}

uint64_t ChunkGrid::row_begin(const std::array<uint32_t, kMaxTensorRank>& part) const {
  uint64_t index = 0;
  for (uint32_t k = 0; k + 1 < dimension_count(); ++k)
    index = (index + part[k]) * split(k + 1).part_count();
  return index;
}

}  // namespace shardwright::plan::internal

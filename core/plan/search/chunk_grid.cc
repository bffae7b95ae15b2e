// SPDX-License-Identifier: Apache-2.0
//
// Chunks as a grid: those that the catalog says to be one, and boxes in any order, maybe with
// copies. The distinct begins of each dimension are collected, as long as they can still be those
// of a grid, and every box is put into its cell.
#include <algorithm>
#include <bit>

#include "core/base/hash_index.h"
#include "core/plan/search/chunk_search_internal.h"
#include "core/plan/search/curve_order_internal.h"

namespace shardwright::plan::internal {
namespace {

// The distinct begins of one dimension, numbered as they come, and the place of each among them in
// ascending order.
class Begins {
 public:
  void reserve(size_t count) {
    index_.reserve(count, [this](size_t i) { return hash_of(places_[i].key); });
  }
  uint32_t number_of(int64_t begin) {
    const auto key = static_cast<uint64_t>(begin);
    const auto found = index_.find(hash_of(key), [&](size_t i) { return places_[i].key == key; });
    if (found.has_value()) return static_cast<uint32_t>(*found);
    const auto number = static_cast<uint32_t>(places_.size());
    places_.push_back({key, number});
    reserve(places_.size());
    index_.insert(hash_of(key), number);
    return number;
  }
  uint64_t size() const { return places_.size(); }

  // The begins in ascending order; from then on place_of answers and nothing is numbered.
  std::vector<int64_t> sort() {
    std::vector<Keyed> sorted = places_;
    sort_by_key(&sorted);
    std::vector<int64_t> begins;
    begins.reserve(sorted.size() + 1);
    for (const Keyed& each : sorted) {
      places_[each.number].number = static_cast<uint32_t>(begins.size());
      begins.push_back(static_cast<int64_t>(each.key));
    }
    return begins;
  }
  uint32_t place_of(uint32_t number) const { return places_[number].number; }

 private:
  static uint64_t hash_of(uint64_t begin) {
    const uint64_t hash = begin * 0x9E3779B97F4A7C15;
    return hash ^ (hash >> 32);
  }

  std::vector<Keyed> places_;
  HashIndex index_;
};

}  // namespace

class GridFinder {
 public:
  GridFinder(const Catalog& catalog, size_t tensor)
      : catalog_(catalog),
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
    if (fills_cells()) return std::move(grid_);
    return std::nullopt;
  }

 private:
  Interval interval(uint64_t chunk, uint32_t k) const {
    return chunk_interval(catalog_, tensor_, tensor_.chunk_begin + chunk, k);
  }

  bool fills_cells() {
    std::vector<Begins> begins(split_.count);
    if (!collect(&begins)) return false;
    const uint64_t cells = cells_of(begins);
    auto splits = std::make_unique<std::vector<DimSplit>>();
    for (uint32_t k = 0; k < split_.count; ++k) {
      std::vector<int64_t>& cuts = cuts_.emplace_back(begins[k].sort());
      cuts.push_back(split_.extents[k]);
      if (cuts[0] != 0 || cuts[cuts.size() - 1] <= cuts[cuts.size() - 2]) return false;
      std::vector<int64_t> sizes;
      for (size_t i = 1; i < cuts.size(); ++i) sizes.push_back(cuts[i] - cuts[i - 1]);
      splits->push_back(DimSplit::of_sizes(sizes));
    }
    if (!place_chunks(begins, cells)) return false;
    for (const DimSplit& split : *splits) grid_.splits_.push_back(&split);
    grid_.own_ = std::move(splits);
    return true;
  }

  // Stops as soon as the begins have more cells than there are chunks.
  bool collect(std::vector<Begins>* begins) {
    numbers_.reserve(count_);
    if (split_.count == 1) begins->front().reserve(count_);
    for (uint64_t c = 0; c < count_; ++c) {
      for (uint32_t k = 0; k < split_.count; ++k)
        numbers_.push_back((*begins)[k].number_of(interval(c, k).begin));
      if (cells_of(*begins) > count_) return false;
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

  bool place_chunks(const std::vector<Begins>& begins, uint64_t cells) {
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
    if (cells == count_) first.clear();
    return true;
  }

  const Catalog& catalog_;
  const TensorRecord& tensor_;
  const SplitDims split_;
  const uint64_t count_;
  std::vector<uint32_t> numbers_;           // of each chunk its begins, one per dimension
  std::vector<std::vector<int64_t>> cuts_;  // begins of parts, then the extent
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

// SPDX-License-Identifier: Apache-2.0
//
// Runs of chunks in the order in which they are stored or along a curve. Building is one pass.
// Whether an order is good is tried on the chunks themselves: one of every kTriedEach, chosen by a
// hash so that no regular order hides from it, is looked up, and all of them together may visit
// kVisitsPerLevel runs per level and lookup. That bounds what looking up every chunk costs, too:
// rare lookups that visit many runs would have been tried with as many visits as there is room for.
#include <algorithm>
#include <limits>
#include <utility>

#include "core/plan/search/chunk_search_internal.h"
#include "core/plan/search/curve_order_internal.h"

namespace shardwright::plan::internal {
namespace {

constexpr uint64_t kTriedEach = 32;
constexpr uint64_t kVisitsPerLevel = 4;
constexpr uint64_t kMixer = 0x9E3779B97F4A7C15;

bool contains(const Interval& outer, const Interval& inner) {
  return outer.begin <= inner.begin && inner.end <= outer.end;
}

}  // namespace

ChunkRuns::ChunkRuns(const Catalog& catalog, size_t tensor, std::vector<uint32_t> order)
    : catalog_(&catalog),
      tensor_(tensor),
      split_count_(split_count(catalog.tensors[tensor])),
      order_(std::move(order)) {
  const uint64_t chunks = catalog.tensors[tensor].chunk_count;
  uint64_t runs = 0;
  for (uint64_t below = chunks; runs != 1; below = runs) {
    runs = (below + kRunLength - 1) / kRunLength;
    levels_.push_back({bounds_.size(), runs});
    bounds_.resize(bounds_.size() + runs * split_count_, kWidensToAny);
  }
  bound_chunks();
  for (size_t level = 1; level < levels_.size(); ++level) bound_runs(level);
}

void ChunkRuns::bound_chunks() {
  const TensorRecord& tensor = catalog_->tensors[tensor_];
  Interval* bound = bounds_.data();
  for (uint64_t first = 0; first < tensor.chunk_count; first += kRunLength, bound += split_count_) {
    const uint64_t end = std::min(first + kRunLength, tensor.chunk_count);
    for (uint64_t place = first; place < end; ++place) {
      for (uint32_t k = 0; k < split_count_; ++k) {
        const ExtentPair own = box_pair(*catalog_, tensor, chunk_at(place), k);
        has_empty_ |= own.size == 0;
        widen(bound + k, {own.offset, own.offset + own.size});
      }
    }
  }
}

void ChunkRuns::bound_runs(size_t level) {
  const Level& below = levels_[level - 1];
  for (uint64_t run = 0; run < below.count; ++run) {
    const Interval* const from = bounds_.data() + below.bound_begin + run * split_count_;
    Interval* const to =
        bounds_.data() + levels_[level].bound_begin + run / kRunLength * split_count_;
    for (uint32_t k = 0; k < split_count_; ++k) widen(to + k, from[k]);
  }
}

// Calls visit(level, run, inside) for runs that meet the region from the top down; it says whether
// to go on below the run. inside: the whole run lies in the region.
template <typename Visit>
void ChunkRuns::walk(size_t level, uint64_t first, const Interval* region,
                     const Visit& visit) const {
  const uint64_t end = std::min(first + kRunLength, levels_[level].count);
  const Interval* bound = bounds_.data() + levels_[level].bound_begin + first * split_count_;
  for (uint64_t run = first; run < end; ++run, bound += split_count_) {
    bool meets = true;
    bool inside = true;
    for (uint32_t k = 0; k < split_count_; ++k) {
      meets &= intervals_meet(bound[k], region[k]);
      inside &= contains(region[k], bound[k]);
    }
    if (!meets || !visit(level, run, inside) || level == 0) continue;
    walk(level - 1, run * kRunLength, region, visit);
  }
}

void ChunkRuns::meeting(const Interval* region, std::vector<uint64_t>* out) const {
  const TensorRecord& tensor = catalog_->tensors[tensor_];
  const auto visit = [&](size_t level, uint64_t run, bool inside) {
    // An empty chunk at an edge of the region does not meet it.
    const bool take_all = inside && !has_empty_;
    if (level > 0 && !take_all) return true;
    uint64_t length = kRunLength;
    for (size_t below = level; below > 0; --below) length *= kRunLength;
    const uint64_t first = run * length;
    const uint64_t end = std::min(first + length, tensor.chunk_count);
    for (uint64_t place = first; place < end; ++place) {
      const uint64_t chunk = chunk_at(place);
      if (take_all || chunk_meets(*catalog_, tensor, chunk, region)) out->push_back(chunk);
    }
    return false;
  };
  walk(levels_.size() - 1, 0, region, visit);
}

bool ChunkRuns::is_good() const {
  const TensorRecord& tensor = catalog_->tensors[tensor_];
  const uint64_t tried = (tensor.chunk_count + kTriedEach - 1) / kTriedEach;
  uint64_t left = tried * levels_.size() * kVisitsPerLevel;
  const auto visit = [&left](size_t, uint64_t, bool) {
    if (left > 0) --left;
    return left > 0;
  };
  for (uint64_t i = 0; i < tried && left > 0; ++i) {
    const uint64_t chosen = i * kTriedEach + ((i + 1) * kMixer >> 32) % kTriedEach;
    const uint64_t chunk = chunk_at(std::min(chosen, tensor.chunk_count - 1));
    walk(levels_.size() - 1, 0, chunk_region(*catalog_, tensor, chunk).data(), visit);
  }
  return left > 0;
}

std::optional<ChunkRuns> ChunkRuns::find(const Catalog& catalog, size_t tensor) {
  {
    ChunkRuns stored(catalog, tensor, {});
    if (stored.is_good()) return stored;
  }
  if (catalog.tensors[tensor].chunk_count > std::numeric_limits<uint32_t>::max())
    return std::nullopt;
  ChunkRuns along(catalog, tensor, curve_order(catalog, tensor));
  if (along.is_good()) return along;
  return std::nullopt;
}

}  // namespace shardwright::plan::internal

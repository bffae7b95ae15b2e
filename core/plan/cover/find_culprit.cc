// SPDX-License-Identifier: Apache-2.0
//
// Names one overlap or one hole of a tensor whose corner sums differ. The region is cut at the
// median of the box boundaries inside it, along the dimension that has most; at least one half has
// differing sums, and the search goes on there. Each cut halves the boundaries of its dimension, so
// there are at most dimensions x log2(2n) cuts.
#include <algorithm>
#include <vector>

#include "core/plan/cover/cover_internal.h"

namespace shardwright::plan::internal {
namespace {

class CulpritSearch {
 public:
  CulpritSearch(const Catalog& catalog, size_t tensor, const SplitDims& split,
                std::span<const uint64_t> chunks)
      : catalog_(catalog), tensor_(catalog.tensors[tensor]), tensor_index_(tensor), split_(split) {
    for (uint32_t k = 0; k < split.count; ++k) region_[k] = {0, split.extents[k]};
    chunks_.reserve(chunks.size());
    for (const uint64_t chunk : chunks) {
      if (meets(chunk, region_)) chunks_.push_back(chunk);
    }
  }

  Result<Culprit> run() {
    while (!chunks_.empty() && cut()) {
    }
    if (chunks_.empty()) return Culprit{std::nullopt, std::nullopt, hole()};
    // No boundary is left inside the region, so each chunk that meets it covers it.
    if (chunks_.size() == 1)
      return internal_error("the corner sums of a tensor differ although its chunks tile it");
    return Culprit{chunks_[0], chunks_[1], Box()};
  }

 private:
  using Region = std::array<Interval, kMaxTensorRank>;

  Interval interval(uint64_t chunk, uint32_t k) const {
    const ExtentPair pair = chunk_pair(catalog_, tensor_, chunk, k);
    return {pair.offset, pair.offset + pair.size};
  }

  bool meets(uint64_t chunk, const Region& region) const {
    for (uint32_t k = 0; k < split_.count; ++k) {
      const Interval own = interval(chunk, k);
      if (std::max(own.begin, region[k].begin) >= std::min(own.end, region[k].end)) return false;
    }
    return true;
  }

  bool sums_differ(const Region& region, const std::vector<uint64_t>& chunks) const {
    CornerTotal total(split_.count);
    Region clipped;
    for (const uint64_t chunk : chunks) {
      for (uint32_t k = 0; k < split_.count; ++k) {
        const Interval own = interval(chunk, k);
        clipped[k] = {std::max(own.begin, region[k].begin), std::min(own.end, region[k].end)};
      }
      total.add(clipped.data());
    }
    return !(total.sum() == box_corner_sum({region.data(), split_.count}));
  }

  // Boundaries of the chunks strictly inside the region.
  void boundaries_inside(uint32_t k, std::vector<int64_t>* out) const {
    out->clear();
    for (const uint64_t chunk : chunks_) {
      const Interval own = interval(chunk, k);
      if (own.begin > region_[k].begin) out->push_back(own.begin);
      if (own.end < region_[k].end) out->push_back(own.end);
    }
  }

  // Replaces the region by a half of it whose sums differ; false when no boundary is left inside.
  bool cut() {
    std::vector<int64_t> most;
    std::vector<int64_t> boundaries;
    uint32_t dimension = 0;
    for (uint32_t k = 0; k < split_.count; ++k) {
      boundaries_inside(k, &boundaries);
      if (boundaries.size() <= most.size()) continue;
      most.swap(boundaries);
      dimension = k;
    }
    if (most.empty()) return false;
    const auto middle = most.begin() + static_cast<std::ptrdiff_t>(most.size() / 2);
    std::nth_element(most.begin(), middle, most.end());
    Region half = region_;
    half[dimension].end = *middle;
    std::vector<uint64_t> inside = chunks_meeting(half);
    if (!sums_differ(half, inside)) {
      half[dimension] = {*middle, region_[dimension].end};
      inside = chunks_meeting(half);
    }
    region_ = half;
    chunks_ = std::move(inside);
    return true;
  }

  std::vector<uint64_t> chunks_meeting(const Region& region) const {
    std::vector<uint64_t> inside;
    for (const uint64_t chunk : chunks_) {
      if (meets(chunk, region)) inside.push_back(chunk);
    }
    return inside;
  }

  Box hole() const {
    Box box = whole_box(catalog_.shape(tensor_index_));
    for (uint32_t k = 0; k < split_.count; ++k) {
      box.offsets[split_.dims[k]] = region_[k].begin;
      box.sizes[split_.dims[k]] = region_[k].end - region_[k].begin;
    }
    return box;
  }

  const Catalog& catalog_;
  const TensorRecord& tensor_;
  const size_t tensor_index_;
  const SplitDims& split_;
  Region region_;
  std::vector<uint64_t> chunks_;  // that meet the region, ascending
};

}  // namespace

Result<Culprit> find_culprit(const Catalog& catalog, size_t tensor, const SplitDims& split,
                             std::span<const uint64_t> chunks) {
  return CulpritSearch(catalog, tensor, split, chunks).run();
}

}  // namespace shardwright::plan::internal

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
      : catalog_(catalog),
        tensor_(catalog.tensors[tensor]),
        split_(split),
        region_(whole_region(split)),
        chunks_(meeting(chunks, region_)) {}

  Culprit run(std::span<const int64_t> shape) {
    while (!chunks_.empty() && cut()) {
    }
    // No boundary is left inside the region, so each chunk that meets it covers it.
    return {std::move(chunks_), hole(shape)};
  }

 private:
  Interval interval(uint64_t chunk, uint32_t k) const {
    return chunk_interval(catalog_, tensor_, chunk, k);
  }

  bool meets(uint64_t chunk, const Region& region) const {
    for (uint32_t k = 0; k < split_.count; ++k) {
      const Interval common = common_of(interval(chunk, k), region[k]);
      if (common.begin >= common.end) return false;
    }
    return true;
  }

  std::vector<uint64_t> meeting(std::span<const uint64_t> chunks, const Region& region) const {
    std::vector<uint64_t> found;
    std::ranges::copy_if(chunks, std::back_inserter(found),
                         [&](uint64_t chunk) { return meets(chunk, region); });
    return found;
  }

  bool sums_differ(const Region& region, const std::vector<uint64_t>& chunks) const {
    CornerTotal total(split_.count);
    Region clipped;
    for (const uint64_t chunk : chunks) {
      for (uint32_t k = 0; k < split_.count; ++k)
        clipped[k] = common_of(interval(chunk, k), region[k]);
      total.add(clipped.data());
    }
    return !(total.sum() == box_corner_sum({region.data(), split_.count}));
  }

  // Boundaries of the chunks strictly inside the region.
  std::vector<int64_t> boundaries_inside(uint32_t k) const {
    std::vector<int64_t> inside;
    for (const uint64_t chunk : chunks_) {
      const Interval own = interval(chunk, k);
      if (own.begin > region_[k].begin) inside.push_back(own.begin);
      if (own.end < region_[k].end) inside.push_back(own.end);
    }
    return inside;
  }

  // Replaces the region by a half of it whose sums differ; false when no boundary is left inside.
  bool cut() {
    std::vector<int64_t> most;
    uint32_t dimension = 0;
    for (uint32_t k = 0; k < split_.count; ++k) {
      std::vector<int64_t> boundaries = boundaries_inside(k);
      if (boundaries.size() <= most.size()) continue;
      most.swap(boundaries);
      dimension = k;
    }
    if (most.empty()) return false;
    const auto middle = most.begin() + static_cast<std::ptrdiff_t>(most.size() / 2);
    std::nth_element(most.begin(), middle, most.end());
    Region half = region_;
    half[dimension].end = *middle;
    std::vector<uint64_t> inside = meeting(chunks_, half);
    if (!sums_differ(half, inside)) {
      half[dimension] = {*middle, region_[dimension].end};
      inside = meeting(chunks_, half);
    }
    region_ = half;
    chunks_ = std::move(inside);
    return true;
  }

  Box hole(std::span<const int64_t> shape) const {
    return box_of_pairs(shape, split_, [this](uint32_t k) -> ExtentPair {
      return {region_[k].begin, region_[k].end - region_[k].begin};
    });
  }

  const Catalog& catalog_;
  const TensorRecord& tensor_;
  const SplitDims& split_;
  Region region_;
  std::vector<uint64_t> chunks_;  // that meet the region, ascending
};

}  // namespace

Culprit find_culprit(const Catalog& catalog, size_t tensor, const SplitDims& split,
                     std::span<const uint64_t> chunks) {
  return CulpritSearch(catalog, tensor, split, chunks).run(catalog.shape(tensor));
}

}  // namespace shardwright::plan::internal

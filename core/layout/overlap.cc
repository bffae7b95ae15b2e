// SPDX-License-Identifier: Apache-2.0
#include "core/layout/overlap.h"

#include <algorithm>
#include <vector>

namespace shardwright {
namespace {

class OverlapSearch {
 public:
  explicit OverlapSearch(std::span<const Box> boxes) : boxes_(boxes) {}

  // Searches among the boxes `inside`, all of which meet the region.
  std::optional<std::pair<size_t, size_t>> search(Box region, std::vector<size_t> inside) const {
    while (inside.size() > 1) {
      size_t dim = 0;
      int64_t middle = 0;
      // Without a boundary inside, every box that meets the region covers it.
      if (!choose_cut(region, inside, &dim, &middle)) return {{inside[0], inside[1]}};
      Box low = region;
      low.sizes[dim] = middle - low.offsets[dim];
      if (auto found = search(low, meeting(low, inside)); found.has_value()) return found;
      region.sizes[dim] -= low.sizes[dim];
      region.offsets[dim] = middle;
      inside = meeting(region, inside);
    }
    return std::nullopt;
  }

 private:
  // The median boundary strictly inside the region, of the dimension that has most of them.
  bool choose_cut(const Box& region, const std::vector<size_t>& inside, size_t* dim,
                  int64_t* middle) const {
    std::vector<int64_t> most;
    std::vector<int64_t> boundaries;
    for (size_t d = 0; d < region.sizes.size(); ++d) {
      boundaries.clear();
      const int64_t region_end = region.offsets[d] + region.sizes[d];
      for (const size_t i : inside) {
        const int64_t begin = boxes_[i].offsets[d];
        const int64_t end = begin + boxes_[i].sizes[d];
        if (begin > region.offsets[d]) boundaries.push_back(begin);
        if (end < region_end) boundaries.push_back(end);
      }
      if (boundaries.size() <= most.size()) continue;
      most.swap(boundaries);
      *dim = d;
    }
    if (most.empty()) return false;
    const auto median = most.begin() + static_cast<std::ptrdiff_t>(most.size() / 2);
    std::nth_element(most.begin(), median, most.end());
    *middle = *median;
    return true;
  }

  std::vector<size_t> meeting(const Box& region, const std::vector<size_t>& boxes) const {
    std::vector<size_t> found;
    for (const size_t i : boxes) {
      if (meets(boxes_[i], region)) found.push_back(i);
    }
    return found;
  }

  static bool meets(const Box& a, const Box& b) {
    for (size_t d = 0; d < a.sizes.size(); ++d) {
      if (a.offsets[d] >= b.offsets[d] + b.sizes[d] || b.offsets[d] >= a.offsets[d] + a.sizes[d]) {
        return false;
      }
    }
    return true;
  }

  std::span<const Box> boxes_;
};

// The smallest box that holds the boxes.
Box hull_of(std::span<const Box> boxes, const std::vector<size_t>& which) {
  Box hull = boxes[which.front()];
  for (const size_t i : which) {
    for (size_t d = 0; d < hull.sizes.size(); ++d) {
      const int64_t end =
          std::max(hull.offsets[d] + hull.sizes[d], boxes[i].offsets[d] + boxes[i].sizes[d]);
      hull.offsets[d] = std::min(hull.offsets[d], boxes[i].offsets[d]);
      hull.sizes[d] = end - hull.offsets[d];
    }
  }
  return hull;
}

}  // namespace

std::optional<std::pair<size_t, size_t>> find_overlap(std::span<const Box> boxes) {
  std::vector<size_t> filled;
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (!box_is_empty(boxes[i])) filled.push_back(i);
  }
  if (filled.size() < 2) return std::nullopt;
  return OverlapSearch(boxes).search(hull_of(boxes, filled), filled);
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
//
// Bounding boxes over irregular chunks. Each node splits its chunks at the median of the dimension
// in which their middles lie farthest apart relative to the tensor, so one long chunk widens only
// the nodes above it.
#include <algorithm>
#include <limits>

#include "core/plan/load/chunk_search_internal.h"

namespace shardwright::plan::internal {

ChunkTree::ChunkTree(const Catalog& catalog, size_t tensor)
    : catalog_(catalog),
      tensor_(catalog.tensors[tensor]),
      split_count_(split_count(catalog.tensors[tensor])) {
  order_.resize(tensor_.chunk_count);
  for (uint64_t c = 0; c < tensor_.chunk_count; ++c) order_[c] = tensor_.chunk_begin + c;
  uint64_t nodes = 1;
  for (uint64_t least = kLeafChunks; least < order_.size(); least *= 2) nodes = nodes * 2 + 1;
  bounds_.assign(nodes * split_count_, Interval{std::numeric_limits<int64_t>::max(), 0});
  if (!order_.empty()) build(0, 0, order_.size());
}

Interval ChunkTree::interval(uint64_t chunk, uint32_t k) const {
  const ExtentPair pair = chunk_pair(catalog_, tensor_, chunk, k);
  return {pair.offset, pair.offset + pair.size};
}

uint32_t ChunkTree::widest_dimension(uint64_t begin, uint64_t end) const {
  const std::span<const int64_t> shape =
      catalog_.shape(catalog_.chunks[tensor_.chunk_begin].tensor);
  const SplitDims split = split_dims(shape, tensor_.split_mask);
  uint32_t widest = 0;
  double widest_share = -1;
  for (uint32_t k = 0; k < split_count_; ++k) {
    int64_t least = std::numeric_limits<int64_t>::max();
    int64_t most = 0;
    for (uint64_t i = begin; i < end; ++i) {
      const Interval own = interval(order_[i], k);
      const int64_t middle = own.begin + (own.end - own.begin) / 2;
      least = std::min(least, middle);
      most = std::max(most, middle);
    }
    const double share = static_cast<double>(most - least) / static_cast<double>(split.extents[k]);
    if (share <= widest_share) continue;
    widest_share = share;
    widest = k;
  }
  return widest;
}

// Depth is log2 of the chunk count.
void ChunkTree::build(uint64_t node, uint64_t begin, uint64_t end) {
  for (uint32_t k = 0; k < split_count_; ++k) {
    Interval& bound = bounds_[node * split_count_ + k];
    for (uint64_t i = begin; i < end; ++i) {
      const Interval own = interval(order_[i], k);
      bound.begin = std::min(bound.begin, own.begin);
      bound.end = std::max(bound.end, own.end);
    }
  }
  if ((2 * node + 2) * split_count_ >= bounds_.size()) return;
  const uint32_t k = widest_dimension(begin, end);
  const uint64_t middle = begin + (end - begin) / 2;
  const auto at = [this](uint64_t i) { return order_.begin() + static_cast<std::ptrdiff_t>(i); };
  std::nth_element(at(begin), at(middle), at(end), [this, k](uint64_t a, uint64_t b) {
    const Interval one = interval(a, k);
    const Interval other = interval(b, k);
    const int64_t first = one.begin + (one.end - one.begin) / 2;
    const int64_t second = other.begin + (other.end - other.begin) / 2;
    return first != second ? first < second : a < b;
  });
  build(2 * node + 1, begin, middle);
  build(2 * node + 2, middle, end);
}

bool ChunkTree::node_meets(uint64_t node, const Interval* region) const {
  for (uint32_t k = 0; k < split_count_; ++k) {
    const Interval& bound = bounds_[node * split_count_ + k];
    if (bound.begin >= region[k].end || bound.end <= region[k].begin) return false;
  }
  return true;
}

bool ChunkTree::chunk_meets(uint64_t chunk, const Interval* region) const {
  for (uint32_t k = 0; k < split_count_; ++k) {
    const Interval own = interval(chunk, k);
    if (std::max(own.begin, region[k].begin) >= std::min(own.end, region[k].end)) return false;
  }
  return true;
}

void ChunkTree::meeting(const Interval* region, std::vector<uint64_t>* out) const {
  struct Pending {
    uint64_t node;
    uint64_t begin;
    uint64_t end;
  };
  std::vector<Pending> stack{{0, 0, order_.size()}};
  while (!stack.empty()) {
    const Pending at = stack.back();
    stack.pop_back();
    if (!node_meets(at.node, region)) continue;
    if ((2 * at.node + 2) * split_count_ < bounds_.size()) {
      const uint64_t middle = at.begin + (at.end - at.begin) / 2;
      stack.push_back({2 * at.node + 1, at.begin, middle});
      stack.push_back({2 * at.node + 2, middle, at.end});
      continue;
    }
    for (uint64_t i = at.begin; i < at.end; ++i) {
      if (chunk_meets(order_[i], region)) out->push_back(order_[i]);
    }
  }
}

}  // namespace shardwright::plan::internal

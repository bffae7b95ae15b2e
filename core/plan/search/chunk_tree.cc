// SPDX-License-Identifier: Apache-2.0
//
// Bounding boxes over irregular chunks. A node is cut at the plane, among a bounded sample of chunk
// begins in every dimension, that fewest of some chunks cross and that divides them most evenly:
// chunks of nested cuts are divided where they were cut, so their nodes do not overlap, and one
// long chunk widens only the nodes above it. A cut leaves at least an eighth on each side, which
// bounds the depth; where no plane does, the chunks are halved by their middles.
#include <algorithm>
#include <array>
#include <limits>

#include "core/plan/search/chunk_search_internal.h"

namespace shardwright::plan::internal {
namespace {

constexpr uint64_t kPlanes = 8;          // begins that are tried as planes, per dimension
constexpr uint64_t kJudgingChunks = 48;  // by which planes are compared, the whole node if smaller
constexpr uint64_t kLeastShare = 8;  // a side of a cut has at least 1 / kLeastShare of the chunks
constexpr uint64_t kSampleMixer = 0x9E3779B97F4A7C15;
constexpr int64_t kNoPlane = std::numeric_limits<int64_t>::max();

int64_t middle_of(const Interval& interval) {
  return interval.begin + (interval.end - interval.begin) / 2;
}

// One of every `step` chunks of a node, at most `most` in all, chosen by a hash: a fixed step would
// see one kind only of chunks that are stored by turns.
struct Sample {
  Sample(uint64_t first, uint64_t node_end, uint64_t most)
      : begin(first),
        end(node_end),
        step((end - first + most - 1) / most),
        count((end - first + step - 1) / step) {}
  uint64_t at(uint64_t i) const {
    const uint64_t hash = (begin + i + 1) * kSampleMixer >> 32;
    return std::min(begin + i * step + (hash * step >> 32), end - 1);
  }
  uint64_t begin;
  uint64_t end;
  uint64_t step;
  uint64_t count;
};

}  // namespace

ChunkTree::ChunkTree(const Catalog& catalog, size_t tensor)
    : tensor_(catalog.tensors[tensor]),
      split_count_(split_count(tensor_)),
      extents_(split_dims(catalog, tensor).extents) {
  order_.resize(tensor_.chunk_count);
  boxes_.reserve(tensor_.chunk_count * split_count_);
  for (uint64_t c = 0; c < tensor_.chunk_count; ++c) {
    order_[c] = c;
    for (uint32_t k = 0; k < split_count_; ++k) {
      boxes_.push_back(chunk_interval(catalog, tensor_, tensor_.chunk_begin + c, k));
    }
  }
  build(0, order_.size());
  sort_boxes();
  bound_nodes();
}

// Until sort_boxes.
Interval ChunkTree::interval(uint64_t chunk, uint32_t k) const {
  return boxes_[chunk * split_count_ + k];
}

// Puts the boxes into the order of the leaves.
void ChunkTree::sort_boxes() {
  std::vector<Interval> sorted;
  sorted.reserve(boxes_.size());
  for (uint64_t& chunk : order_) {
    for (uint32_t k = 0; k < split_count_; ++k) sorted.push_back(interval(chunk, k));
    chunk += tensor_.chunk_begin;
  }
  boxes_ = std::move(sorted);
}

// Children stand behind their parents.
void ChunkTree::bound_nodes() {
  bounds_.resize(nodes_.size() * split_count_, kWidensToAny);
  for (uint64_t node = nodes_.size(); node-- > 0;) {
    Interval* const bound = bounds_.data() + node * split_count_;
    const auto add = [&](const Interval* parts, uint64_t count) {
      for (uint64_t i = 0; i < count * split_count_; ++i) widen(bound + i % split_count_, parts[i]);
    };
    const Node& own = nodes_[node];
    if (own.second_child == 0) {
      add(boxes_.data() + own.begin * split_count_, own.end - own.begin);
    } else {
      add(bound + split_count_, 1);
      add(bounds_.data() + own.second_child * split_count_, 1);
    }
  }
}

// Cost of the best plane in dimension k: chunks that cross it count most, then how uneven it is.
ChunkTree::Plane ChunkTree::best_plane(uint64_t begin, uint64_t end, uint32_t k) const {
  std::array<int64_t, kPlanes> planes;
  planes.fill(kNoPlane);
  const Sample from(begin, end, kPlanes);
  for (uint64_t i = 0; i < from.count; ++i) planes[i] = interval(order_[from.at(i)], k).begin;
  std::ranges::sort(planes);
  const auto copies = std::ranges::unique(planes);
  std::ranges::fill(copies, kNoPlane);
  // ends[p]: chunks whose end lies at plane p or before, but after plane p - 1; begins likewise.
  std::array<uint64_t, kPlanes + 1> ends{};
  std::array<uint64_t, kPlanes + 1> begins{};
  const Sample judges(begin, end, kJudgingChunks);
  for (uint64_t i = 0; i < judges.count; ++i) {
    const Interval own = interval(order_[judges.at(i)], k);
    size_t before_end = 0;
    size_t up_to_begin = 0;
    for (const int64_t plane : planes) {
      before_end += static_cast<size_t>(plane < own.end);
      up_to_begin += static_cast<size_t>(plane <= own.begin);
    }
    ++ends[before_end];
    ++begins[up_to_begin];
  }
  Plane best;
  const uint64_t count = judges.count;
  uint64_t before = 0;         // chunks that end at the plane or before it
  uint64_t begun = begins[0];  // chunks that begin before the plane, begins at it left out below
  for (size_t p = 0; p < kPlanes && planes[p] != kNoPlane; ++p) {
    before += ends[p];
    const uint64_t after = count - begun;
    begun += begins[p + 1];
    if (before + after > count || before * kLeastShare < count || after * kLeastShare < count) {
      continue;
    }
    const uint64_t crossing = count - before - after;
    const uint64_t uneven = before > after ? before - after : after - before;
    const uint64_t cost = 8 * crossing + uneven;
    if (best.found && cost >= best.cost) continue;
    best = {true, cost, k, planes[p]};
  }
  return best;
}

// Orders the chunks of a node so that the first ones belong to its first child; where the second
// begins.
uint64_t ChunkTree::divide(uint64_t begin, uint64_t end) {
  const auto at = [this](uint64_t i) { return order_.begin() + static_cast<std::ptrdiff_t>(i); };
  Plane best;
  for (uint32_t k = 0; k < split_count_; ++k) {
    const Plane plane = best_plane(begin, end, k);
    if (plane.found && (!best.found || plane.cost < best.cost)) best = plane;
  }
  if (best.found) {
    const auto middle = std::partition(at(begin), at(end), [&](uint64_t chunk) {
      return middle_of(interval(chunk, best.dimension)) < best.coordinate;
    });
    const auto divided = static_cast<uint64_t>(middle - order_.begin());
    const uint64_t least = (end - begin) / kLeastShare;
    if (divided - begin >= least && end - divided >= least) return divided;
  }
  const uint32_t k = widest_dimension(begin, end);
  const uint64_t middle = begin + (end - begin) / 2;
  std::nth_element(at(begin), at(middle), at(end), [this, k](uint64_t a, uint64_t b) {
    const int64_t first = middle_of(interval(a, k));
    const int64_t second = middle_of(interval(b, k));
    return first != second ? first < second : a < b;
  });
  return middle;
}

// Dimension in which the middles lie farthest apart relative to the tensor.
uint32_t ChunkTree::widest_dimension(uint64_t begin, uint64_t end) const {
  uint32_t widest = 0;
  double widest_share = -1;
  for (uint32_t k = 0; k < split_count_; ++k) {
    int64_t least = std::numeric_limits<int64_t>::max();
    int64_t most = 0;
    for (uint64_t i = begin; i < end; ++i) {
      const int64_t middle = middle_of(interval(order_[i], k));
      least = std::min(least, middle);
      most = std::max(most, middle);
    }
    const double extent = static_cast<double>(std::max<int64_t>(extents_[k], 1));
    const double share = static_cast<double>(most - least) / extent;
    if (share <= widest_share) continue;
    widest_share = share;
    widest = k;
  }
  return widest;
}

// Adds the node of these chunks and all below it; its number. The depth is bounded by kLeastShare.
uint64_t ChunkTree::build(uint64_t begin, uint64_t end) {
  const uint64_t node = nodes_.size();
  nodes_.push_back({begin, end, 0});
  if (end - begin <= kLeafChunks) return node;
  const uint64_t middle = divide(begin, end);
  build(begin, middle);
  nodes_[node].second_child = build(middle, end);
  return node;
}

bool ChunkTree::all_meet(const Interval* own, const Interval* region, uint32_t count) {
  for (uint32_t k = 0; k < count; ++k) {
    if (!intervals_meet(own[k], region[k])) return false;
  }
  return true;
}

void ChunkTree::meeting(const Interval* region, std::vector<uint64_t>* out) const {
  std::vector<uint64_t> stack{0};
  while (!stack.empty()) {
    const uint64_t at = stack.back();
    stack.pop_back();
    if (!all_meet(bounds_.data() + at * split_count_, region, split_count_)) continue;
    const Node& node = nodes_[at];
    if (node.second_child != 0) {
      stack.push_back(at + 1);
      stack.push_back(node.second_child);
      continue;
    }
    for (uint64_t i = node.begin; i < node.end; ++i) {
      if (all_meet(boxes_.data() + i * split_count_, region, split_count_)) {
        out->push_back(order_[i]);
      }
    }
  }
}

}  // namespace shardwright::plan::internal

// SPDX-License-Identifier: Apache-2.0
//
// Proof that boxes tile a tensor. A set of boxes covers a region exactly once iff its signed
// corners cancel to those of the region: sum over boxes and corners of (-1)^parity x [corner] is
// the region's own sum. Each corner gets the value of a product over the split dimensions of
// g(dimension, coordinate), where g is a keyed random element of the field of 2^61 - 1 elements,
// two independent lanes. The sum over the corners of one box then factors into product over
// dimensions of (g(begin) - g(end)), so a box costs two hashes per dimension instead of
// 2^dimensions, and two different corner sets agree by chance with probability below (dimensions /
// 2^61)^2 (Schwartz-Zippel). The key is fixed: the proof guards against mistakes and damage, and no
// memory safety hangs on it. Pure functions, any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/limits.h"
#include "core/plan/catalog.h"
#include "core/plan/flat_chunks_internal.h"

namespace shardwright::plan::internal {

// Element pair of the field, each below 2^61 - 1.
struct CornerSum {
  uint64_t first = 0;
  uint64_t second = 0;
  friend bool operator==(const CornerSum&, const CornerSum&) = default;
};

// Half-open interval of one dimension.
struct Interval {
  int64_t begin;  // without a value of its own: regions below are made often and filled at once
  int64_t end;
  friend bool operator==(const Interval&, const Interval&) = default;
};

inline constexpr Interval kWidensToAny{std::numeric_limits<int64_t>::max(),
                                       0};  // widens to anything

inline void widen(Interval* hull, const Interval& by) {
  hull->begin = std::min(hull->begin, by.begin);
  hull->end = std::max(hull->end, by.end);
}

inline bool intervals_meet(const Interval& a, const Interval& b) {
  return a.begin < b.end && b.begin < a.end;
}

// Ends before its begin where they meet nowhere.
inline Interval common_of(const Interval& a, const Interval& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

// What a chunk has of split dimension k.
inline Interval chunk_interval(const Catalog& catalog, const TensorRecord& tensor, uint64_t chunk,
                               uint32_t k) {
  const ExtentPair pair = chunk_pair(catalog, tensor, chunk, k);
  return {pair.offset, pair.offset + pair.size};
}

// One interval per split dimension.
using Region = std::array<Interval, kMaxTensorRank>;
inline Region whole_region(const SplitDims& split) {
  Region region;
  for (uint32_t k = 0; k < split.count; ++k) region[k] = {0, split.extents[k]};
  return region;
}
inline Region region_of(const SplitDims& split, const Box& box) {
  Region region;
  for (uint32_t k = 0; k < split.count; ++k) {
    const int64_t begin = box.offsets[split.dims[k]];
    region[k] = {begin, begin + box.sizes[split.dims[k]]};
  }
  return region;
}
inline Region chunk_region(const Catalog& catalog, const TensorRecord& tensor, uint64_t chunk) {
  Region region;
  const uint32_t count = split_count(tensor);
  for (uint32_t k = 0; k < count; ++k) region[k] = chunk_interval(catalog, tensor, chunk, k);
  return region;
}

// Signed corner sums of boxes that are given one after the other, all of the same dimensions.
// Values of the last box stay at hand, because neighbours share coordinates.
class CornerTerms {
 public:
  explicit CornerTerms(uint32_t dimension_count);
  // Sum of one box; zero when it is empty, {1, 1} without dimensions.
  CornerSum of(const Interval* box);

 private:
  friend class CornerTotal;
  __extension__ using Wide = unsigned __int128;

  // Both lanes below 2^62, not yet reduced.
  struct Term {
    uint64_t first;
    uint64_t second;
  };
  // g(begin) and g(end) of the last interval of a dimension.
  struct Last {
    int64_t begin_at;
    int64_t end_at;
    Term begin;
    Term end;
  };
  Term product(const Interval* box);

  uint32_t count_;
  std::array<Last, kMaxTensorRank> last_;  // the first count_ elements are set
};

// Sum over many boxes.
class CornerTotal {
 public:
  explicit CornerTotal(uint32_t dimension_count) : terms_(dimension_count) {}
  void add(const Interval* box);
  CornerSum sum() const;

 private:
  CornerTerms terms_;
  CornerTerms::Wide first_ = 0;  // of values below 2^62: no overflow within 2^64 boxes
  CornerTerms::Wide second_ = 0;
};

CornerSum add(const CornerSum& a, const CornerSum& b);
CornerSum box_corner_sum(std::span<const Interval> box);

// Whether the chunks of the tensor, all inside it, cover it exactly once. Linear.
bool chunks_tile(const Catalog& catalog, size_t tensor, const SplitDims& split);
// The same of some of its chunks.
bool chunks_tile(const Catalog& catalog, size_t tensor, const SplitDims& split,
                 std::span<const uint64_t> chunks);

// Those of these chunks of the tensor, in order, whose box equals that of no earlier one. Linear.
std::vector<uint64_t> distinct_chunks(const Catalog& catalog, size_t tensor,
                                      std::span<const uint64_t> chunks);

// A region that the chunks cover more than once, or that none of them meets.
struct Culprit {
  std::vector<uint64_t> chunks;  // that cover it, ascending
  Box region;                    // all dimensions
};
// Of chunks that do not tile the tensor. Halves it along box boundaries and follows a half whose
// sums differ. O(n log n) for n chunks.
Culprit find_culprit(const Catalog& catalog, size_t tensor, const SplitDims& split,
                     std::span<const uint64_t> chunks);

// DATA_LOSS: the chunks do not fill each element of the box exactly once.
Status not_filled(const Catalog& catalog, size_t tensor, const Box& wanted);

// INVALID_ARGUMENT that names two chunks of the tensor and their places.
Status overlap_status(const Catalog& catalog, size_t tensor, uint64_t first_chunk,
                      uint64_t second_chunk, std::string_view place_noun);

}  // namespace shardwright::plan::internal

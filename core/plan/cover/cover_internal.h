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

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/plan/catalog.h"
#include "core/plan/flat_chunks_internal.h"

namespace shardwright::plan::internal {

// Element pair of the field, each below 2^61 - 1.
struct CornerSum {
  uint64_t first = 0;
  uint64_t second = 0;
  friend bool operator==(const CornerSum&, const CornerSum&) = default;
};

// Half-open interval of one split dimension.
struct Interval {
  int64_t begin = 0;
  int64_t end = 0;
};

CornerSum add(const CornerSum& a, const CornerSum& b);
// Signed corner sum of the box with these intervals, one per split dimension; zero for an empty
// box.
CornerSum box_corner_sum(std::span<const Interval> box);

// Whether the chunks of the tensor, all inside it, cover it exactly once. Linear.
bool chunks_tile(const Catalog& catalog, size_t tensor, const SplitDims& split);

// Why chunks_tile said no: two chunks that overlap, or a box that no chunk meets.
struct Culprit {
  std::optional<uint64_t> first_chunk;  // set together: an overlap
  std::optional<uint64_t> second_chunk;
  Box hole;  // all dimensions
};
// Halves the tensor along box boundaries and follows a half whose sums differ. O(n log n) for n
// chunks. INTERNAL when the chunks do tile it.
Result<Culprit> find_culprit(const Catalog& catalog, size_t tensor, const SplitDims& split);

// prove_cover with the word for ChunkRecord.place in messages: "rank", "file", "piece", "place".
Status prove_cover_naming(const Catalog& catalog, size_t tensor, std::string_view place_noun);
Status prove_all_covers_naming(const Catalog& catalog, std::string_view place_noun);

}  // namespace shardwright::plan::internal

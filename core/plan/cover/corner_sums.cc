// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of corner sums in the field of 2^61 - 1 elements, and the sum over a tensor.
#include <xxhash.h>

#include "core/plan/cover/cover_internal.h"

namespace shardwright::plan::internal {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
constexpr uint64_t kKey = 0x5348574C41594F55;

uint64_t reduce(uint64_t value) {
  value = (value & kPrime) + (value >> 61);
  return value >= kPrime ? value - kPrime : value;
}

uint64_t add_mod(uint64_t a, uint64_t b) {
  return reduce(a + b);
}
uint64_t subtract_mod(uint64_t a, uint64_t b) {
  return a >= b ? a - b : a + kPrime - b;
}

uint64_t multiply_mod(uint64_t a, uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return reduce((static_cast<uint64_t>(product) & kPrime) + static_cast<uint64_t>(product >> 61));
}

// g(dimension, coordinate).
CornerSum random_element(uint64_t dimension, int64_t coordinate) {
  const XXH128_hash_t hash =
      XXH3_128bits_withSeed(&coordinate, sizeof(coordinate), kKey + dimension);
  return {reduce(hash.low64), reduce(hash.high64)};
}

// Terms of one dimension; neighbouring boxes of an ordered catalog share coordinates, so the last
// two stay at hand.
class DimensionTerms {
 public:
  CornerSum difference(uint64_t dimension, const Interval& interval) {
    if (interval.begin != begin_at_) {
      begin_value_ =
          interval.begin == end_at_ ? end_value_ : random_element(dimension, interval.begin);
      begin_at_ = interval.begin;
    }
    if (interval.end != end_at_) {
      end_value_ = random_element(dimension, interval.end);
      end_at_ = interval.end;
    }
    return {subtract_mod(begin_value_.first, end_value_.first),
            subtract_mod(begin_value_.second, end_value_.second)};
  }

 private:
  int64_t begin_at_ = -1;  // coordinates are never negative
  int64_t end_at_ = -1;
  CornerSum begin_value_;
  CornerSum end_value_;
};

CornerSum multiply(const CornerSum& a, const CornerSum& b) {
  return {multiply_mod(a.first, b.first), multiply_mod(a.second, b.second)};
}

// One split dimension in ascending order, the common case of row shards: plain arithmetic.
bool rows_tile(const Catalog& catalog, const TensorRecord& tensor, int64_t extent) {
  int64_t expected = 0;
  for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c) {
    const ChunkRecord& chunk = catalog.chunks[c];
    if (chunk.size0 == 0) continue;
    if (chunk.offset0 != expected) return false;
    expected += chunk.size0;
  }
  return expected == extent;
}

}  // namespace

CornerSum add(const CornerSum& a, const CornerSum& b) {
  return {add_mod(a.first, b.first), add_mod(a.second, b.second)};
}

CornerSum box_corner_sum(std::span<const Interval> box) {
  CornerSum term{1, 1};
  for (size_t k = 0; k < box.size(); ++k) {
    DimensionTerms terms;
    term = multiply(term, terms.difference(k, box[k]));
  }
  return term;
}

bool chunks_tile(const Catalog& catalog, size_t tensor_index, const SplitDims& split) {
  const TensorRecord& tensor = catalog.tensors[tensor_index];
  if (split.unsplit_elements == 0) return true;
  std::array<Interval, kMaxTensorRank> whole;
  for (uint32_t k = 0; k < split.count; ++k) {
    if (split.extents[k] == 0) return true;
    whole[k] = {0, split.extents[k]};
  }
  if (split.count == 0) return tensor.chunk_count == 1;
  if (split.count == 1 && rows_tile(catalog, tensor, split.extents[0])) return true;
  std::array<DimensionTerms, kMaxTensorRank> terms;
  CornerSum sum;
  for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c) {
    CornerSum term{1, 1};
    for (uint32_t k = 0; k < split.count; ++k) {
      const ExtentPair pair = chunk_pair(catalog, tensor, c, k);
      term = multiply(term, terms[k].difference(k, {pair.offset, pair.offset + pair.size}));
    }
    sum = add(sum, term);
  }
  return sum == box_corner_sum({whole.data(), split.count});
}

}  // namespace shardwright::plan::internal

// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of corner sums in the field of 2^61 - 1 elements. Values are reduced as little as
// their bounds allow: differences and products stay below 2^62, totals are 128 bits wide.
#include <xxhash.h>

#include "core/plan/cover/cover_internal.h"

namespace shardwright::plan::internal {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
constexpr uint64_t kKey = 0x5348574C41594F55;
constexpr int64_t kNowhere = -1;  // coordinates are never negative

// Below 2^61 + 8.
uint64_t fold(uint64_t value) {
  return (value & kPrime) + (value >> 61);
}

// Of factors below 2^62: below 2^61 + 8.
uint64_t multiply(uint64_t a, uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return fold((static_cast<uint64_t>(product) & kPrime) + static_cast<uint64_t>(product >> 61));
}

// The element itself.
uint64_t reduced(Wide value) {
  while (value > kPrime) value = (value & kPrime) + (value >> 61);
  const auto element = static_cast<uint64_t>(value);
  return element == kPrime ? 0 : element;
}

}  // namespace

CornerTerms::CornerTerms(uint32_t dimension_count) : count_(dimension_count) {
  for (uint32_t k = 0; k < count_; ++k) last_[k] = {kNowhere, kNowhere, {}, {}};
}

inline CornerTerms::Term CornerTerms::product(const Interval* box) {
  // g(dimension, coordinate): each lane at most 2^61 - 1.
  const auto random = [](uint32_t dimension, int64_t coordinate) {
    const XXH128_hash_t hash =
        XXH3_128bits_withSeed(&coordinate, sizeof(coordinate), kKey + dimension);
    return Term{hash.low64 & kPrime, hash.high64 & kPrime};
  };
  Term term{1, 1};
  for (uint32_t k = 0; k < count_; ++k) {
    Last& last = last_[k];
    if (box[k].begin != last.begin_at) {
      last.begin = box[k].begin == last.end_at ? last.end : random(k, box[k].begin);
      last.begin_at = box[k].begin;
    }
    if (box[k].end != last.end_at) {
      last.end = random(k, box[k].end);
      last.end_at = box[k].end;
    }
    const Term difference{last.begin.first + kPrime - last.end.first,
                          last.begin.second + kPrime - last.end.second};
    term = k == 0 ? difference
                  : Term{multiply(term.first, difference.first),
                         multiply(term.second, difference.second)};
  }
  return term;
}

CornerSum CornerTerms::of(const Interval* box) {
  const Term term = product(box);
  return {reduced(term.first), reduced(term.second)};
}

void CornerTotal::add(const Interval* box) {
  const CornerTerms::Term term = terms_.product(box);
  first_ += term.first;
  second_ += term.second;
}

CornerSum CornerTotal::sum() const {
  return {reduced(first_), reduced(second_)};
}

CornerSum add(const CornerSum& a, const CornerSum& b) {
  return {reduced(static_cast<Wide>(a.first) + b.first),
          reduced(static_cast<Wide>(a.second) + b.second)};
}

CornerSum box_corner_sum(std::span<const Interval> box) {
  return CornerTerms(static_cast<uint32_t>(box.size())).of(box.data());
}

}  // namespace shardwright::plan::internal

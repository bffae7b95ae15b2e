// SPDX-License-Identifier: Apache-2.0
//
// Distinct values sorted by comparison, or by digits where there are many.
#include "core/plan/search/coordinate_set_internal.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace shardwright::plan::internal {
namespace {

constexpr size_t kSortedByComparison = 256;  // fewer values are not worth passes over digits
constexpr uint32_t kDigitBits = 8;
constexpr size_t kDigits = size_t{1} << kDigitBits;

void sort_by_digits(std::vector<int64_t>* values) {
  const auto most = static_cast<uint64_t>(*std::ranges::max_element(*values));
  std::vector<int64_t> other(values->size());
  for (uint32_t shift = 0; shift < 64 && (most >> shift) != 0; shift += kDigitBits) {
    const auto digit = [shift](int64_t value) {
      return static_cast<size_t>(static_cast<uint64_t>(value) >> shift) & (kDigits - 1);
    };
    std::array<size_t, kDigits> next{};
    for (const int64_t value : *values) ++next[digit(value)];
    size_t begin = 0;
    for (size_t& each : next) {
      const size_t count = each;
      each = begin;
      begin += count;
    }
    for (const int64_t value : *values) other[next[digit(value)]++] = value;
    values->swap(other);
  }
}

}  // namespace

void CoordinateSet::reserve(uint64_t count) {
  const uint64_t capacity = std::bit_ceil(std::max<uint64_t>(2 * (count + 1), 16));
  slots_.assign(capacity, Slot());
  shift_ = 64 - static_cast<uint32_t>(std::countr_zero(capacity));
  size_ = 0;
}

bool CoordinateSet::insert(int64_t coordinate) {
  uint64_t slot = start_of(coordinate);
  while (slots_[slot].coordinate != kFree) {
    if (slots_[slot].coordinate == coordinate) return false;
    slot = (slot + 1) & (slots_.size() - 1);
  }
  slots_[slot].coordinate = coordinate;
  if (2 * ++size_ > slots_.size()) grow();
  return true;
}

void CoordinateSet::grow() {
  const std::vector<Slot> from = std::move(slots_);
  reserve(from.size());
  for (const Slot& slot : from) {
    if (slot.coordinate != kFree) insert(slot.coordinate);
  }
}

std::vector<int64_t> CoordinateSet::sort() {
  std::vector<int64_t> values;
  values.reserve(size_ + 1);
  for (const Slot& slot : slots_) {
    if (slot.coordinate != kFree) values.push_back(slot.coordinate);
  }
  if (values.size() < kSortedByComparison) {
    std::ranges::sort(values);
  } else {
    sort_by_digits(&values);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    uint64_t slot = start_of(values[i]);
    while (slots_[slot].coordinate != values[i]) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot].rank = static_cast<uint32_t>(i);
  }
  return values;
}

uint32_t CoordinateSet::rank_of(int64_t coordinate) const {
  uint64_t slot = start_of(coordinate);
  while (slots_[slot].coordinate != coordinate) slot = (slot + 1) & (slots_.size() - 1);
  return slots_[slot].rank;
}

}  // namespace shardwright::plan::internal

// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/dims.h"

#include <algorithm>
#include <utility>

namespace shardwright {

Dims::Dims(std::span<const int64_t> values) : size_(values.size()) {
  if (size_ > kInline) heap_.resize(size_);
  std::copy(values.begin(), values.end(), data());
}

Dims::Dims(size_t count, int64_t value) : size_(count) {
  if (size_ > kInline) heap_.resize(size_);
  std::fill_n(data(), count, value);
}

Dims::Dims(Dims&& other) noexcept
    : size_(std::exchange(other.size_, 0)), heap_(std::move(other.heap_)) {
  std::copy_n(other.inline_, kInline, inline_);
}

Dims& Dims::operator=(Dims&& other) noexcept {
  if (this == &other) return *this;
  size_ = std::exchange(other.size_, 0);
  heap_ = std::move(other.heap_);
  std::copy_n(other.inline_, kInline, inline_);
  return *this;
}

bool operator==(const Dims& a, const Dims& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::strong_ordering operator<=>(const Dims& a, const Dims& b) {
  return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
}

int64_t element_count_of(std::span<const int64_t> extents) {
  int64_t count = 1;
  for (const int64_t extent : extents) {
    if (extent == 0) return 0;
    // Unsigned: beside a zero that comes later the product may wrap.
    count = static_cast<int64_t>(static_cast<uint64_t>(count) * static_cast<uint64_t>(extent));
  }
  return count;
}

}  // namespace shardwright

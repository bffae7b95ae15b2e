// SPDX-License-Identifier: Apache-2.0
//
// Dims: a small vector of int64_t with room for 8 extents inside, for shapes, offsets and strides.
// Value type and contiguous range, so it passes where a std::span<const int64_t> is taken.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace shardwright {

class Dims {
 public:
  static constexpr size_t kInline = 8;
  Dims() = default;
  Dims(std::initializer_list<int64_t> values)
      : Dims(std::span<const int64_t>(values.begin(), values.size())) {}
  explicit Dims(std::span<const int64_t> values);
  Dims(size_t count, int64_t value);
  Dims(const Dims&) = default;
  Dims& operator=(const Dims&) = default;
  Dims(Dims&& other) noexcept;  // leaves other empty
  Dims& operator=(Dims&& other) noexcept;
  ~Dims() = default;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t* data() { return size_ <= kInline ? inline_ : heap_.data(); }
  const int64_t* data() const { return size_ <= kInline ? inline_ : heap_.data(); }
  int64_t& operator[](size_t i) { return data()[i]; }
  int64_t operator[](size_t i) const { return data()[i]; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size_; }
  int64_t* begin() { return data(); }
  int64_t* end() { return data() + size_; }
  std::span<const int64_t> span() const { return {data(), size_}; }
  friend bool operator==(const Dims& a, const Dims& b);
  friend std::strong_ordering operator<=>(const Dims& a, const Dims& b);

 private:
  size_t size_ = 0;
  int64_t inline_[kInline] = {};
  std::vector<int64_t> heap_;
};

// Product of extents that were checked before: 0 when one is 0, 1 for none.
int64_t element_count_of(std::span<const int64_t> extents);

}  // namespace shardwright

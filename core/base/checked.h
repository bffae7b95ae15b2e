// SPDX-License-Identifier: Apache-2.0
//
// Checked arithmetic for sizes and offsets that come from a caller, a file or a peer. Each function
// returns false and leaves the output untouched when the exact result does not fit. Pure functions,
// any thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>

#include "core/base/result.h"

namespace shardwright {

template <std::integral T>
[[nodiscard]] bool checked_add(T a, T b, T* out) {
  T sum;
  if (__builtin_add_overflow(a, b, &sum)) return false;
  *out = sum;
  return true;
}

template <std::integral T>
[[nodiscard]] bool checked_multiply(T a, T b, T* out) {
  T product;
  if (__builtin_mul_overflow(a, b, &product)) return false;
  *out = product;
  return true;
}

// Conversion that keeps the value, or false.
template <std::integral To, std::integral From>
[[nodiscard]] bool checked_cast(From value, To* out) {
  if (!std::in_range<To>(value)) return false;
  *out = static_cast<To>(value);
  return true;
}

// Product of extents; 1 for an empty list. INVALID_ARGUMENT when one is negative or the product
// (zero extents aside) does not fit int64_t: a shape such as {2^62, 4, 0} is refused although it
// has no element.
Result<int64_t> checked_element_count(std::span<const int64_t> extents);

// Rounds up to a multiple (a power of two); false when it does not fit.
[[nodiscard]] bool checked_round_up(uint64_t value, uint64_t multiple, uint64_t* out);

}  // namespace shardwright

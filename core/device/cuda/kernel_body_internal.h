// SPDX-License-Identifier: Apache-2.0
//
// What one thread of a kernel does: plain loops, so that what a GPU runs is tested where there is
// none. Includes nothing of CUDA.
#pragma once

#include <cstdint>

#include "core/tensor/number_codes.h"

namespace shardwright::device::internal {

enum class NumberType : int32_t { kFloat16, kBfloat16, kFloat32, kFloat64 };

// As ElementCopy, with what a kernel takes.
struct KernelCopy {
  const void* source = nullptr;
  void* target = nullptr;
  uint64_t rows = 0;
  uint64_t columns = 0;
  uint64_t source_pitch = 0;
  uint64_t target_pitch = 0;
  double scale = 1.0;
  bool adds = false;
};

// The columns and rows of one thread.
struct KernelShare {
  uint64_t first_row = 0;
  uint64_t row_step = 1;
  uint64_t first_column = 0;
  uint64_t column_step = 1;
};

namespace {

// NaN of 16 bits is the quiet one as a double, with its sign, as the host has it.
template <typename Source, typename Sum>
SHW_NUMBER_FUNCTION Sum decode_number(typename Source::Stored stored) {
  const auto value = static_cast<Sum>(Source::decode(stored));
  constexpr bool kHasFewerBits = sizeof(typename Source::Stored) < sizeof(typename Source::Sum);
  if constexpr (kHasFewerBits && sizeof(Sum) > sizeof(typename Source::Sum)) {
    if (value != value)
      return __builtin_bit_cast(double, uint64_t{stored} >> 15 << 63 | uint64_t{0x7FF8} << 48);
  }
  return value;
}

// Rounds once, also from a double to 16 bits, on the way to which it is a float.
template <typename Target, typename Sum>
SHW_NUMBER_FUNCTION typename Target::Stored encode_number(Sum value) {
  constexpr bool kHasFewerBits = sizeof(typename Target::Stored) < sizeof(typename Target::Sum);
  if constexpr (kHasFewerBits && sizeof(Sum) > sizeof(typename Target::Sum)) {
    return Target::encode(shardwright::internal::sticky_float(value));
  } else {
    return Target::encode(static_cast<typename Target::Sum>(value));
  }
}

// Sum: float, or double where one of the numbers is.
template <typename Source, typename Target, typename Sum>
SHW_NUMBER_FUNCTION void copy_share(const KernelCopy& copy, const KernelShare& share) {
  using shardwright::internal::canonical;
  const auto scale = static_cast<Sum>(copy.scale);
  for (uint64_t row = share.first_row; row < copy.rows; row += share.row_step) {
    const auto* const source =
        static_cast<const typename Source::Stored*>(copy.source) + row * copy.source_pitch;
    auto* const target =
        static_cast<typename Target::Stored*>(copy.target) + row * copy.target_pitch;
    for (uint64_t column = share.first_column; column < copy.columns; column += share.column_step) {
      auto value = decode_number<Source, Sum>(source[column]);
      if (copy.scale != 1) value = canonical(value * scale);
      if (copy.adds) value = canonical(static_cast<Sum>(Target::decode(target[column])) + value);
      target[column] = encode_number<Target>(value);
    }
  }
}

}  // namespace

}  // namespace shardwright::device::internal

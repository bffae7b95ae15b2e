// SPDX-License-Identifier: Apache-2.0
//
// How floats lie in memory and what they are added in: the one place that says so, for the loops of
// the host, per instruction set, and for those of a GPU. All is local to the file that includes it,
// so that no code for one set of instructions is linked into what another one runs. Each function
// rounds to nearest, ties to even; NaN is that of torch 2.15. Pure, any thread.
#pragma once

#include <stdint.h>

#if defined(__CUDACC__)
#define SHW_NUMBER_FUNCTION __host__ __device__
#else
#define SHW_NUMBER_FUNCTION
#endif

namespace shardwright::internal {
namespace {

// Per dtype: how an element lies in memory, what it adds in, and the way to and fro.
template <typename T>
struct PlainNumber {
  using Stored = T;
  using Sum = T;
  SHW_NUMBER_FUNCTION static Sum decode(Stored value) { return value; }
  SHW_NUMBER_FUNCTION static Stored encode(Sum value) { return value; }
};

// The nearest float, except that lost bits leave the last bit odd. A second rounding to 22 bits or
// fewer then gives what one rounding of the value would give.
[[maybe_unused]] SHW_NUMBER_FUNCTION float sticky_float(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  const auto bits = __builtin_bit_cast(uint32_t, nearest);
  if (back == value || value != value || (bits & 1) != 0) return nearest;
  // An even neighbour: the other one is odd. Infinity is one, too, for values that no float has.
  const bool is_beyond = value < 0 ? back < value : back > value;
  return __builtin_bit_cast(float, is_beyond ? bits - 1 : bits + 1);
}

struct Bfloat16Number {
  using Stored = uint16_t;
  using Sum = float;
  SHW_NUMBER_FUNCTION static float decode(uint16_t code) {
    return __builtin_bit_cast(float, uint32_t{code} << 16);
  }
  SHW_NUMBER_FUNCTION static uint16_t encode(float value) {
    const auto bits = __builtin_bit_cast(uint32_t, value);
    const uint32_t rounded = bits + 0x7FFF + ((bits >> 16) & 1);
    const uint32_t quiet_nan = (bits & 0x80000000) | 0x7FC00000;
    return static_cast<uint16_t>(((bits & 0x7FFFFFFF) > 0x7F800000 ? quiet_nan : rounded) >> 16);
  }
};

struct Float16Number {
  using Stored = uint16_t;
  using Sum = float;

  SHW_NUMBER_FUNCTION static float decode(uint16_t code) {
    const uint32_t magnitude = uint32_t{code} & 0x7FFF;
    // Moves the exponent field over and corrects its bias by an exact product, subnormals included.
    const float finite = __builtin_bit_cast(float, magnitude << 13) * 0x1p112F;
    const uint32_t special = (magnitude << 13) | 0x7F800000;
    const uint32_t bits = magnitude >= 0x7C00 ? special : __builtin_bit_cast(uint32_t, finite);
    return __builtin_bit_cast(float, bits | (uint32_t{code} & 0x8000) << 16);
  }

  // Every way is computed and one kept, so that the loop has no branch.
  SHW_NUMBER_FUNCTION static uint16_t encode(float value) {
    const auto bits = __builtin_bit_cast(uint32_t, value);
    const uint32_t magnitude = bits & 0x7FFFFFFF;
    // Drops 13 bits of the mantissa, ties to even; a carry moves on into the exponent, up to
    // infinity.
    const uint32_t normal = (magnitude + 0xFFF + ((magnitude >> 13) & 1) - kBiasDifference) >> 13;
    // Below the least normal number: behind 0.5 a float has steps of the least subnormal one.
    const float shifted = __builtin_bit_cast(float, magnitude) + 0.5F;
    const uint32_t subnormal = __builtin_bit_cast(uint32_t, shifted) - kHalfBits;
    uint32_t code = magnitude < kLeastNormalBits ? subnormal : normal;
    code = magnitude >= kTooLargeBits ? 0x7C00 : code;
    code = magnitude > 0x7F800000 ? 0x7E00 : code;
    return static_cast<uint16_t>(code | (bits >> 16 & 0x8000));
  }

 private:
  static constexpr uint32_t kBiasDifference = uint32_t{127 - 15} << 23;
  static constexpr uint32_t kHalfBits = 0x3F000000;         // 0.5
  static constexpr uint32_t kLeastNormalBits = 0x38800000;  // 2^-14
  static constexpr uint32_t kTooLargeBits = 0x47800000;     // 2^16
};

// Sums have one NaN, whatever a processor makes of those that it met.
template <typename T>
SHW_NUMBER_FUNCTION T canonical(T value) {
  return value;
}

template <>
[[maybe_unused]] SHW_NUMBER_FUNCTION float canonical(float value) {
  return value != value ? __builtin_bit_cast(float, uint32_t{0x7FC00000}) : value;
}

template <>
[[maybe_unused]] SHW_NUMBER_FUNCTION double canonical(double value) {
  return value != value ? __builtin_bit_cast(double, uint64_t{0x7FF8} << 48) : value;
}

}  // namespace
}  // namespace shardwright::internal

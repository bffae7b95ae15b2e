// SPDX-License-Identifier: Apache-2.0
//
// Encoding and decoding of floats of 8 and 16 bits by their parameters. Encoding rounds once, from
// double, to nearest with ties to even. The 8-bit types are those of the OCP 8-bit floating point
// specification and of the names that torch and ml_dtypes share. Pure.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace shardwright::internal {

// What the top codes mean.
enum class SpecialValues {
  kIeee,                // all-ones exponent: infinity and NaN
  kFinite,              // "fn": no infinity, NaN is all ones
  kFiniteUnsignedZero,  // "fnuz": no infinity, one zero, NaN is the code of -0
};

struct MinifloatFormat {
  int32_t exponent_bits;
  int32_t mantissa_bits;
  int32_t bias;
  SpecialValues special;
};

inline constexpr MinifloatFormat kFloat16Format{5, 10, 15, SpecialValues::kIeee};
inline constexpr MinifloatFormat kBfloat16Format{8, 7, 127, SpecialValues::kIeee};
inline constexpr MinifloatFormat kFloat8E3m4Format{3, 4, 3, SpecialValues::kIeee};
inline constexpr MinifloatFormat kFloat8E4m3Format{4, 3, 7, SpecialValues::kIeee};
inline constexpr MinifloatFormat kFloat8E4m3b11fnuzFormat{4, 3, 11,
                                                          SpecialValues::kFiniteUnsignedZero};
inline constexpr MinifloatFormat kFloat8E4m3fnFormat{4, 3, 7, SpecialValues::kFinite};
inline constexpr MinifloatFormat kFloat8E4m3fnuzFormat{4, 3, 8, SpecialValues::kFiniteUnsignedZero};
inline constexpr MinifloatFormat kFloat8E5m2Format{5, 2, 15, SpecialValues::kIeee};
inline constexpr MinifloatFormat kFloat8E5m2fnuzFormat{5, 2, 16,
                                                       SpecialValues::kFiniteUnsignedZero};

inline constexpr int32_t kDoubleMantissaBits = 52;
inline constexpr int32_t kDoubleBias = 1023;

constexpr double power_of_two(int32_t exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + kDoubleBias)
                               << kDoubleMantissaBits);
}

// Codes without the sign bit.
template <MinifloatFormat F>
struct MinifloatCodes {
  static constexpr uint32_t kSign = 1U << (F.exponent_bits + F.mantissa_bits);
  static constexpr uint32_t kAllOnes = kSign - 1;
  static constexpr uint32_t kInfinity = kAllOnes - ((1U << F.mantissa_bits) - 1);
  static constexpr uint32_t kLargest = F.special == SpecialValues::kIeee     ? kInfinity - 1
                                       : F.special == SpecialValues::kFinite ? kAllOnes - 1
                                                                             : kAllOnes;
};

template <MinifloatFormat F>
constexpr uint32_t minifloat_nan(uint32_t sign) {
  using Codes = MinifloatCodes<F>;
  if (F.special == SpecialValues::kFiniteUnsignedZero) return Codes::kSign;
  if (F.special == SpecialValues::kFinite) return sign | Codes::kAllOnes;
  return sign | Codes::kInfinity | (1U << (F.mantissa_bits - 1));
}

// What infinity and everything that rounds beyond the largest finite value become (torch 2.15).
template <MinifloatFormat F>
constexpr uint32_t minifloat_overflow(uint32_t sign) {
  if (F.special == SpecialValues::kIeee) return sign | MinifloatCodes<F>::kInfinity;
  if (F.special == SpecialValues::kFinite) return sign | MinifloatCodes<F>::kLargest;
  return minifloat_nan<F>(sign);
}

template <MinifloatFormat F>
constexpr uint32_t encode_minifloat(double value) {
  using Codes = MinifloatCodes<F>;
  const auto bits = std::bit_cast<uint64_t>(value);
  const uint32_t sign = (bits >> 63) != 0 ? Codes::kSign : 0;
  const auto biased = static_cast<int32_t>((bits >> kDoubleMantissaBits) & 0x7FF);
  const uint64_t mantissa = bits & ((uint64_t{1} << kDoubleMantissaBits) - 1);
  if (biased == 0x7FF) return mantissa != 0 ? minifloat_nan<F>(sign) : minifloat_overflow<F>(sign);

  const int32_t exponent = biased - kDoubleBias;
  const int32_t least_normal = 1 - F.bias;
  const int32_t below =
      exponent < least_normal ? least_normal - exponent : 0;  // extra bits a subnormal loses
  const int32_t dropped = kDoubleMantissaBits - F.mantissa_bits + below;
  uint64_t code = 0;
  if (dropped <= kDoubleMantissaBits + 1) {  // else below half of the least subnormal
    const uint64_t significand = (uint64_t{1} << kDoubleMantissaBits) | mantissa;
    const uint64_t kept = significand >> dropped;
    const uint64_t rest = significand & ((uint64_t{1} << dropped) - 1);
    const uint64_t half = uint64_t{1} << (dropped - 1);
    const uint64_t rounded = kept + (rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0);
    // The leading one of a normal number adds 1 to the exponent field; a carry moves on by itself.
    const int32_t field = below > 0 ? 0 : exponent + F.bias - 1;
    code = (static_cast<uint64_t>(field) << F.mantissa_bits) + rounded;
  }
  if (code > Codes::kLargest) return minifloat_overflow<F>(sign);
  if (code == 0 && F.special == SpecialValues::kFiniteUnsignedZero) return 0;
  return sign | static_cast<uint32_t>(code);
}

template <MinifloatFormat F>
constexpr double decode_minifloat(uint32_t code) {
  using Codes = MinifloatCodes<F>;
  const uint32_t magnitude = code & Codes::kAllOnes;
  const bool negative = (code & Codes::kSign) != 0;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (F.special == SpecialValues::kFiniteUnsignedZero && code == Codes::kSign) return kNan;
  if (magnitude > Codes::kLargest) {
    if (F.special != SpecialValues::kIeee || magnitude != Codes::kInfinity)
      return negative ? -kNan : kNan;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return negative ? -kInfinity : kInfinity;
  }
  const uint32_t field = magnitude >> F.mantissa_bits;
  const uint32_t mantissa = magnitude & ((1U << F.mantissa_bits) - 1);
  const uint32_t significand = field == 0 ? mantissa : mantissa | (1U << F.mantissa_bits);
  const int32_t exponent = static_cast<int32_t>(field == 0 ? 1 : field) - F.bias - F.mantissa_bits;
  const double value = static_cast<double>(significand) * power_of_two(exponent);
  return negative ? -value : value;
}

// float8_e8m0fnu: 2^(code - 127), code 255 is NaN.
inline constexpr uint32_t kE8m0Nan = 255;
inline constexpr int32_t kE8m0Bias = 127;

constexpr double decode_e8m0(uint32_t code) {
  if (code == kE8m0Nan) return std::numeric_limits<double>::quiet_NaN();
  return power_of_two(static_cast<int32_t>(code) - kE8m0Bias);
}

constexpr uint32_t encode_e8m0(double value) {
  if (!(value >= 0)) return kE8m0Nan;  // negative or NaN; -0 counts as zero
  if (value <= power_of_two(-kE8m0Bias)) return 0;
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto exponent = static_cast<int32_t>(bits >> kDoubleMantissaBits) - kDoubleBias;
  // The highest mantissa bit says whether value is at least 1.5 times the power of two: ties go up.
  const auto up = static_cast<int32_t>((bits >> (kDoubleMantissaBits - 1)) & 1);
  const int32_t rounded = exponent + kE8m0Bias + up;
  return rounded >= static_cast<int32_t>(kE8m0Nan) ? kE8m0Nan : static_cast<uint32_t>(rounded);
}

}  // namespace shardwright::internal

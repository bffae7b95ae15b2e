// SPDX-License-Identifier: Apache-2.0
#include "cli/small_float.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "shardwright/shardwright.h"

namespace shardwright::cli {
namespace {

// Exponents only: 2^(bits - 127), all ones is NaN; there is no zero and no sign.
constexpr uint8_t kExponentOnlyBits = 8;

}  // namespace

std::optional<SmallFloat> small_float_of(ElementType type) {
  using Special = SmallFloat::Special;
  switch (type.dtype) {
    case SHW_FLOAT16:
      return SmallFloat{};
    case SHW_BFLOAT16:
      return SmallFloat{16, 8, 7, 127, Special::kIeee};
    case SHW_FLOAT8_E3M4:
      return SmallFloat{8, 3, 4, 3, Special::kIeee};
    case SHW_FLOAT8_E4M3:
      return SmallFloat{8, 4, 3, 7, Special::kIeee};
    case SHW_FLOAT8_E4M3B11FNUZ:
      return SmallFloat{8, 4, 3, 11, Special::kNegativeZero};
    case SHW_FLOAT8_E4M3FN:
      return SmallFloat{8, 4, 3, 7, Special::kAllOnes};
    case SHW_FLOAT8_E4M3FNUZ:
      return SmallFloat{8, 4, 3, 8, Special::kNegativeZero};
    case SHW_FLOAT8_E5M2:
      return SmallFloat{8, 5, 2, 15, Special::kIeee};
    case SHW_FLOAT8_E5M2FNUZ:
      return SmallFloat{8, 5, 2, 16, Special::kNegativeZero};
    case SHW_FLOAT8_E8M0FNU:
      return SmallFloat{8, kExponentOnlyBits, 0, 127, Special::kAllOnes};
    case SHW_FLOAT6_E2M3FN:
      return SmallFloat{6, 2, 3, 1, Special::kNone};
    case SHW_FLOAT6_E3M2FN:
      return SmallFloat{6, 3, 2, 3, Special::kNone};
    case SHW_FLOAT4_E2M1FN:
      return SmallFloat{4, 2, 1, 1, Special::kNone};
    default:
      return std::nullopt;
  }
}

double small_float_value(const SmallFloat& format, uint64_t bits) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const uint64_t mantissa_ones = (uint64_t{1} << format.mantissa_bits) - 1;
  const uint64_t exponent_ones = (uint64_t{1} << format.exponent_bits) - 1;
  const uint64_t mantissa = bits & mantissa_ones;
  const uint64_t exponent = (bits >> format.mantissa_bits) & exponent_ones;
  const bool negative = ((bits >> (format.mantissa_bits + format.exponent_bits)) & 1) != 0;
  if (format.mantissa_bits == 0) {
    return exponent == exponent_ones ? kNan
                                     : std::ldexp(1.0, static_cast<int>(exponent) - format.bias);
  }
  if (format.special == SmallFloat::Special::kNegativeZero && negative && exponent == 0 &&
      mantissa == 0)
    return kNan;
  if (exponent == exponent_ones && format.special == SmallFloat::Special::kIeee) {
    const double infinity = std::numeric_limits<double>::infinity();
    return mantissa != 0 ? kNan : negative ? -infinity : infinity;
  }
  if (exponent == exponent_ones && mantissa == mantissa_ones &&
      format.special == SmallFloat::Special::kAllOnes) {
    return kNan;
  }
  const uint64_t significand = exponent == 0 ? mantissa : mantissa + mantissa_ones + 1;
  const int power = std::max(static_cast<int>(exponent), 1) - format.bias - format.mantissa_bits;
  const double magnitude = std::ldexp(static_cast<double>(significand), power);
  return negative ? -magnitude : magnitude;
}

Gap small_float_gap(const SmallFloat& format, double value) {
  const int lowest = (format.mantissa_bits == 0 ? 0 : 1) - format.bias;
  const int exponent = value == 0 ? lowest : std::max(std::ilogb(value), lowest);
  const double step = std::ldexp(1.0, exponent - format.mantissa_bits);
  const bool power_of_two = value != 0 && std::ldexp(1.0, std::ilogb(value)) == std::fabs(value);
  return {step, power_of_two && exponent > lowest ? step / 2 : step};
}

}  // namespace shardwright::cli

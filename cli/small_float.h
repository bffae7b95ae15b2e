// SPDX-License-Identifier: Apache-2.0
//
// Floats of up to 16 bits: how their bits are read and how far apart their values lie. Pure, any
// thread.
#pragma once

#include <cstdint>
#include <optional>

#include "cli/element_text.h"

namespace shardwright::cli {

struct SmallFloat {
  // What the highest exponent means: infinities and NaN (IEEE 754); NaN only where all bits below
  // the sign are set; NaN only as the negative zero; plain numbers.
  enum class Special : uint8_t { kIeee, kAllOnes, kNegativeZero, kNone };
  uint8_t bits = 16;
  uint8_t exponent_bits = 5;
  uint8_t mantissa_bits = 10;
  int32_t bias = 15;
  Special special = Special::kIeee;
};

// Nothing for dtypes of more than 16 bits or that are no float.
std::optional<SmallFloat> small_float_of(ElementType type);
double small_float_value(const SmallFloat& format, uint64_t bits);
// Distance from a finite value to the next larger magnitude, and the part of it that rounds back
// towards zero.
struct Gap {
  double above = 0;
  double below = 0;
};
Gap small_float_gap(const SmallFloat& format, double value);

}  // namespace shardwright::cli

// SPDX-License-Identifier: Apache-2.0
//
// Body of one kernel source: defines the table SHW_NUMBERS_TABLE (its text name SHW_NUMBERS_NAME)
// of plain loops, which the including file's compile options vectorise. All functions are
// file-local, so no wide code leaks to other files. Included once per kernel source, on purpose
// without a guard.

#include <stdint.h>

#include "core/tensor/number_kernel_internal.h"

namespace shardwright::internal {
namespace {

template <typename T>
T load_number(const unsigned char* at) {
  T value;
  __builtin_memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T>
void store_number(T value, unsigned char* at) {
  __builtin_memcpy(at, &value, sizeof(T));
}

// Per dtype: how an element lies in memory, what it adds in, and the way to and fro.
template <typename T>
struct PlainNumber {
  using Stored = T;
  using Sum = T;
  static Sum decode(Stored value) { return value; }
  static Stored encode(Sum value) { return value; }
};

struct Bfloat16Number {
  using Stored = uint16_t;
  using Sum = float;
  static float decode(uint16_t code) { return __builtin_bit_cast(float, uint32_t{code} << 16); }
  static uint16_t encode(float value) {
    const auto bits = __builtin_bit_cast(uint32_t, value);
    const uint32_t rounded = bits + 0x7FFF + ((bits >> 16) & 1);
    const uint32_t quiet_nan = (bits & 0x80000000) | 0x7FC00000;
    return static_cast<uint16_t>(((bits & 0x7FFFFFFF) > 0x7F800000 ? quiet_nan : rounded) >> 16);
  }
};

struct Float16Number {
  using Stored = uint16_t;
  using Sum = float;

  static float decode(uint16_t code) {
    const uint32_t magnitude = uint32_t{code} & 0x7FFF;
    // Moves the exponent field over and corrects its bias by an exact product, subnormals included.
    const float finite = __builtin_bit_cast(float, magnitude << 13) * 0x1p112F;
    const uint32_t special = (magnitude << 13) | 0x7F800000;
    const uint32_t bits = magnitude >= 0x7C00 ? special : __builtin_bit_cast(uint32_t, finite);
    return __builtin_bit_cast(float, bits | (uint32_t{code} & 0x8000) << 16);
  }

  // Every way is computed and one kept, so that the loop has no branch.
  static uint16_t encode(float value) {
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

// Behind wide code: with dirty upper halves of the vector registers each SSE instruction of the
// callers waits for them. gcc 12 leaves it out where the wide part is called and not inlined.
void leave_wide_numbers() {
#if defined(__AVX__)
  __builtin_ia32_vzeroupper();
#endif
}

template <typename T>
T canonical(T value) {
  return value;
}

template <>
float canonical(float value) {
  return value != value ? __builtin_nanf("") : value;
}

template <>
double canonical(double value) {
  return value != value ? __builtin_nan("") : value;
}

template <typename T>
inline constexpr bool kIsFloat = static_cast<T>(0.5F) != 0;

// Sums wait in the nearest cache, so that each part is read in long runs.
inline constexpr size_t kSumBlockElements = 1024;

template <typename Number>
void sum_block(const SumArguments& arguments, size_t begin, size_t count) {
  using Stored = typename Number::Stored;
  using Sum = typename Number::Sum;
  Sum sums[kSumBlockElements];
  const unsigned char* part = arguments.first + begin * sizeof(Stored);
  for (size_t i = 0; i < count; ++i)
    sums[i] = Number::decode(load_number<Stored>(part + i * sizeof(Stored)));
  for (size_t p = 0; p < arguments.rest_count; ++p) {
    part = arguments.rest + (p * arguments.count + begin) * sizeof(Stored);
    for (size_t i = 0; i < count; ++i) {
      sums[i] = static_cast<Sum>(sums[i] +
                                 Number::decode(load_number<Stored>(part + i * sizeof(Stored))));
    }
  }
  if constexpr (kIsFloat<Sum>) {
    const auto scale = static_cast<Sum>(arguments.scale);
    if (scale != 1)
      for (size_t i = 0; i < count; ++i) sums[i] *= scale;
  }
  unsigned char* const target = arguments.target + begin * sizeof(Stored);
  for (size_t i = 0; i < count; ++i)
    store_number<Stored>(Number::encode(canonical(sums[i])), target + i * sizeof(Stored));
}

template <typename Number>
void sum_numbers(const SumArguments& arguments) {
  for (size_t begin = 0; begin < arguments.count; begin += kSumBlockElements) {
    const size_t left = arguments.count - begin;
    sum_block<Number>(arguments, begin, left < kSumBlockElements ? left : kSumBlockElements);
  }
  leave_wide_numbers();
}

template <typename Number>
void narrow_numbers(const unsigned char* __restrict source, size_t count,
                    unsigned char* __restrict target) {
  using Stored = typename Number::Stored;
  for (size_t i = 0; i < count; ++i) {
    store_number<Stored>(Number::encode(load_number<float>(source + i * sizeof(float))),
                         target + i * sizeof(Stored));
  }
  leave_wide_numbers();
}

template <typename Number>
void widen_numbers(const unsigned char* __restrict source, size_t count,
                   unsigned char* __restrict target) {
  using Stored = typename Number::Stored;
  for (size_t i = 0; i < count; ++i) {
    store_number<float>(Number::decode(load_number<Stored>(source + i * sizeof(Stored))),
                        target + i * sizeof(float));
  }
  leave_wide_numbers();
}

}  // namespace

// A body, included once per instruction set.
const NumberKernel SHW_NUMBERS_TABLE = {  // NOLINT(misc-definitions-in-headers)
    SHW_NUMBERS_NAME,
    &sum_numbers<Float16Number>,
    &sum_numbers<Bfloat16Number>,
    &sum_numbers<PlainNumber<float>>,
    &sum_numbers<PlainNumber<double>>,
    &sum_numbers<PlainNumber<uint8_t>>,
    &sum_numbers<PlainNumber<uint16_t>>,
    &sum_numbers<PlainNumber<uint32_t>>,
    &sum_numbers<PlainNumber<uint64_t>>,
    &narrow_numbers<Bfloat16Number>,
    &widen_numbers<Bfloat16Number>,
    &narrow_numbers<Float16Number>,
    &widen_numbers<Float16Number>};

}  // namespace shardwright::internal

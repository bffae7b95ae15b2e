// SPDX-License-Identifier: Apache-2.0
//
// Body of one kernel source: defines the table SHW_NUMBERS_TABLE (its text name SHW_NUMBERS_NAME)
// of plain loops, which the including file's compile options vectorise. All functions are
// file-local, so no wide code leaks to other files. Included once per kernel source, on purpose
// without a guard.

#include <stdint.h>

#include "core/tensor/number_codes.h"
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

// Behind wide code: with dirty upper halves of the vector registers each SSE instruction of the
// callers waits for them. gcc 12 leaves it out where the wide part is called and not inlined.
void leave_wide_numbers() {
#if defined(__AVX__)
  __builtin_ia32_vzeroupper();
#endif
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

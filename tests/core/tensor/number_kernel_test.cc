// SPDX-License-Identifier: Apache-2.0
//
// The casts of every kernel that this processor runs give the bits of the general way through
// float64: all codes of 16 bits, and floats round all of them.
#include "core/tensor/number_kernel_internal.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensor/minifloat_internal.h"
#include "tests/support/random_source.h"

namespace shardwright::internal {
namespace {

std::vector<const NumberKernel*> kernels_of_this_processor() {
  std::vector<const NumberKernel*> kernels = {&kNumberBaseline};
#if defined(SHW_NUMBERS_WIDE)
  if (__builtin_cpu_supports("avx2")) kernels.push_back(&kNumberAvx2);
#endif
  return kernels;
}

constexpr size_t kCodes = 0x10000;

// Runs a cast between odd addresses.
template <typename To, typename From>
std::vector<To> cast_all(CastFunction function, const std::vector<From>& source) {
  std::vector<unsigned char> from(source.size() * sizeof(From) + 1);
  std::vector<unsigned char> to(source.size() * sizeof(To) + 1);
  std::ranges::copy(std::as_bytes(std::span(source)),
                    std::as_writable_bytes(std::span(from)).begin() + 1);
  function(from.data() + 1, source.size(), to.data() + 1);
  std::vector<To> result(source.size());
  std::ranges::copy(std::as_bytes(std::span(to).subspan(1)),
                    std::as_writable_bytes(std::span(result)).begin());
  return result;
}

// What a code of 16 bits is in float32: a NaN keeps its sign and payload.
template <MinifloatFormat F>
uint32_t widened(uint16_t code) {
  const double value = decode_minifloat<F>(code);
  if (!std::isnan(value)) return std::bit_cast<uint32_t>(static_cast<float>(value));
  const uint32_t payload = uint32_t{code} & ((1U << F.mantissa_bits) - 1);
  return (uint32_t{code} & 0x8000) << 16 | 0x7F800000 | payload << (23 - F.mantissa_bits);
}

template <MinifloatFormat F>
uint16_t narrowed(uint32_t bits) {
  return static_cast<uint16_t>(
      encode_minifloat<F>(static_cast<double>(std::bit_cast<float>(bits))));
}

std::vector<uint16_t> all_codes() {
  std::vector<uint16_t> codes(kCodes);
  for (size_t code = 0; code < kCodes; ++code) codes[code] = static_cast<uint16_t>(code);
  return codes;
}

// Every value of 16 bits, ties between two of them, and their neighbours; then any bits.
std::vector<uint32_t> floats_round_all_codes() {
  std::vector<uint32_t> floats;
  for (const uint16_t code : all_codes()) {
    for (const uint32_t exact : {widened<kFloat16Format>(code), widened<kBfloat16Format>(code)}) {
      for (const uint32_t off : {0U, 1U, 0xFFFU, 0x1000U, 0x1001U, 0x7FFFU, 0x8000U, 0x8001U})
        floats.push_back(exact + off);
    }
  }
  test::RandomSource random;
  for (size_t i = 0; i < 8 * kCodes + 5; ++i)
    floats.push_back(static_cast<uint32_t>(random.next()));
  return floats;
}

TEST(NumberKernel, WidensEveryCode) {
  const std::vector<uint16_t> codes = all_codes();
  for (const NumberKernel* kernel : kernels_of_this_processor()) {
    const auto from_float16 = cast_all<uint32_t>(kernel->float16_to_float32, codes);
    const auto from_bfloat16 = cast_all<uint32_t>(kernel->bfloat16_to_float32, codes);
    for (const uint16_t code : codes) {
      ASSERT_EQ(from_float16[code], widened<kFloat16Format>(code)) << kernel->name << " " << code;
      ASSERT_EQ(from_bfloat16[code], widened<kBfloat16Format>(code)) << kernel->name << " " << code;
    }
  }
}

TEST(NumberKernel, NarrowsAsTheGeneralWayDoes) {
  const std::vector<uint32_t> floats = floats_round_all_codes();
  for (const NumberKernel* kernel : kernels_of_this_processor()) {
    const auto to_float16 = cast_all<uint16_t>(kernel->float32_to_float16, floats);
    const auto to_bfloat16 = cast_all<uint16_t>(kernel->float32_to_bfloat16, floats);
    for (size_t i = 0; i < floats.size(); ++i) {
      ASSERT_EQ(to_float16[i], narrowed<kFloat16Format>(floats[i]))
          << kernel->name << " " << floats[i];
      ASSERT_EQ(to_bfloat16[i], narrowed<kBfloat16Format>(floats[i]))
          << kernel->name << " " << floats[i];
    }
  }
}

TEST(NumberKernel, CastsEveryLength) {
  const std::vector<uint32_t> floats(77, std::bit_cast<uint32_t>(1.5F));
  for (const NumberKernel* kernel : kernels_of_this_processor()) {
    for (size_t length = 0; length < floats.size(); ++length) {
      const std::vector<uint32_t> source(floats.begin(),
                                         floats.begin() + static_cast<ptrdiff_t>(length));
      const auto codes = cast_all<uint16_t>(kernel->float32_to_float16, source);
      EXPECT_EQ(codes, std::vector<uint16_t>(length, 0x3E00)) << kernel->name;
      EXPECT_EQ(cast_all<uint32_t>(kernel->float16_to_float32, codes), source) << kernel->name;
    }
  }
}

TEST(NumberKernel, TheWidestOneIsChosen) {
  EXPECT_EQ(&best_number_kernel(), kernels_of_this_processor().back());
}

}  // namespace
}  // namespace shardwright::internal

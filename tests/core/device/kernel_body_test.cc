// SPDX-License-Identifier: Apache-2.0
//
// What the threads of a GPU's kernel do, run one after the other by this machine: the bits of the
// host's copy, whatever the numbers are.
#include "core/device/cuda/kernel_body_internal.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/element_copy.h"
#include "core/tensor/cast.h"
#include "tests/support/random_source.h"

namespace shardwright::device {
namespace {

using internal::copy_share;
using internal::KernelCopy;
using shardwright::internal::Bfloat16Number;
using shardwright::internal::Float16Number;
using Float32Number = shardwright::internal::PlainNumber<float>;
using Float64Number = shardwright::internal::PlainNumber<double>;
using Memory = std::vector<std::byte>;

constexpr uint64_t kRows = 5;
constexpr uint64_t kColumns = 700;
constexpr uint64_t kPitch = 711;

struct Pair {
  DType from;
  DType to;
  std::function<void(const KernelCopy&)> run;
};

// A grid of 3 by 2 blocks of 32 threads.
template <typename Source, typename Target, typename Sum>
void run_all_threads(const KernelCopy& copy) {
  for (uint64_t row = 0; row < 2; ++row)
    for (uint64_t thread = 0; thread < 96; ++thread)
      copy_share<Source, Target, Sum>(
          copy, {.first_row = row, .row_step = 2, .first_column = thread, .column_step = 96});
}

template <typename Source, typename Sum>
void add_pairs(DType from, std::vector<Pair>* pairs) {
  pairs->push_back({from, DType::kFloat16, run_all_threads<Source, Float16Number, Sum>});
  pairs->push_back({from, DType::kBfloat16, run_all_threads<Source, Bfloat16Number, Sum>});
  pairs->push_back({from, DType::kFloat32, run_all_threads<Source, Float32Number, Sum>});
  pairs->push_back({from, DType::kFloat64, run_all_threads<Source, Float64Number, double>});
}

std::vector<Pair> all_pairs() {
  std::vector<Pair> pairs;
  add_pairs<Float16Number, float>(DType::kFloat16, &pairs);
  add_pairs<Bfloat16Number, float>(DType::kBfloat16, &pairs);
  add_pairs<Float32Number, float>(DType::kFloat32, &pairs);
  add_pairs<Float64Number, double>(DType::kFloat64, &pairs);
  return pairs;
}

TEST(KernelBody, GivesTheBitsOfTheHost) {
  test::RandomSource
      random;  // any bits at all: infinities, NaN and the least numbers are among them
  for (const Pair& pair : all_pairs()) {
    for (const double scale : {1.0, 1.0 / 3, 1e-30}) {
      for (const bool adds : {false, true}) {
        const Memory source = random.bytes(kRows * kPitch * 8);
        Memory expected = random.bytes(kRows * kPitch * 8);
        Memory found = expected;
        ElementCopy copy{.source = source.data(),
                         .target = expected.data(),
                         .rows = kRows,
                         .columns = kColumns,
                         .source_pitch = kPitch,
                         .target_pitch = kPitch - 3,
                         .source_dtype = pair.from,
                         .target_dtype = pair.to,
                         .scale = scale,
                         .adds = adds};
        if (copies_bytes(copy)) continue;  // no kernel does that
        ASSERT_TRUE(copy_elements_on_host(copy).ok());
        pair.run({source.data(), found.data(), kRows, kColumns, kPitch, kPitch - 3, scale, adds});
        EXPECT_EQ(std::memcmp(expected.data(), found.data(), expected.size()), 0)
            << dtype_name(pair.from) << " to " << dtype_name(pair.to) << " by " << scale
            << (adds ? ", added" : "");
      }
    }
  }
}

// Of doubles: what lies exactly between two codes, and the next ones on either side, which a
// rounding by way of a float takes for that.
template <typename Number>
void expect_ties_of(DType narrow) {
  std::vector<uint16_t> codes(1 << 16);
  std::iota(codes.begin(), codes.end(), uint16_t{0});
  std::vector<double> values(codes.size());
  ASSERT_TRUE(copy_elements_on_host({.source = reinterpret_cast<const std::byte*>(codes.data()),
                                     .target = reinterpret_cast<std::byte*>(values.data()),
                                     .columns = codes.size(),
                                     .source_dtype = narrow,
                                     .target_dtype = DType::kFloat64})
                  .ok());
  test::RandomSource random;
  for (size_t code = 0; code < codes.size(); ++code) {
    EXPECT_TRUE(values[code] == static_cast<double>(Number::decode(codes[code])) ||
                std::isnan(values[code]));
    const double next = code % 0x8000 == 0x7FFF ? values[code] : values[code + 1];
    const double tie = std::isinf(next) ? values[code] + (values[code] - values[code - 1]) / 2
                                        : (values[code] + next) / 2;
    const double away = tie + (random.chance(50) ? 1 : -1) * std::abs(tie) *
                                  std::ldexp(1.0, -static_cast<int>(random.between(30, 51)));
    const std::vector<double> near{values[code], tie, std::nextafter(tie, 0.0),
                                   std::nextafter(tie, 2 * tie), away};
    std::vector<uint16_t> expected(near.size());
    ASSERT_TRUE(cast_elements(DType::kFloat64, std::as_bytes(std::span(near)), narrow,
                              std::as_writable_bytes(std::span(expected)))
                    .ok());
    for (size_t each = 0; each < near.size(); ++each)
      ASSERT_EQ(internal::encode_number<Number>(near[each]), expected[each])
          << dtype_name(narrow) << " of code " << code << ", value " << near[each];
  }
}

TEST(KernelBody, RoundsDoublesOnce) {
  expect_ties_of<Float16Number>(DType::kFloat16);
  expect_ties_of<Bfloat16Number>(DType::kBfloat16);
}

}  // namespace
}  // namespace shardwright::device

// SPDX-License-Identifier: Apache-2.0
//
// What the threads of a GPU's kernel do, run one after the other by this machine: the bits of the
// host's copy, whatever the numbers are.
#include "core/device/cuda/kernel_body_internal.h"

#include <cstring>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/element_copy.h"
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

template <typename Source>
void add_narrow_pairs(DType from, std::vector<Pair>* pairs) {
  pairs->push_back({from, DType::kFloat16, run_all_threads<Source, Float16Number, float>});
  pairs->push_back({from, DType::kBfloat16, run_all_threads<Source, Bfloat16Number, float>});
  pairs->push_back({from, DType::kFloat32, run_all_threads<Source, Float32Number, float>});
}

std::vector<Pair> all_pairs() {
  std::vector<Pair> pairs;
  add_narrow_pairs<Float16Number>(DType::kFloat16, &pairs);
  add_narrow_pairs<Bfloat16Number>(DType::kBfloat16, &pairs);
  add_narrow_pairs<Float32Number>(DType::kFloat32, &pairs);
  pairs.push_back(
      {DType::kFloat32, DType::kFloat64, run_all_threads<Float32Number, Float64Number, double>});
  pairs.push_back(
      {DType::kFloat64, DType::kFloat32, run_all_threads<Float64Number, Float32Number, double>});
  pairs.push_back(
      {DType::kFloat64, DType::kFloat64, run_all_threads<Float64Number, Float64Number, double>});
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

}  // namespace
}  // namespace shardwright::device

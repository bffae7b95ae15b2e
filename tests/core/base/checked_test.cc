// SPDX-License-Identifier: Apache-2.0
//
// Checked arithmetic at its edges.
#include "core/base/checked.h"

#include <vector>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TEST(Checked, AddRefusesWhatDoesNotFitAndKeepsTheOutput) {
  int64_t sum = 5;
  EXPECT_TRUE(checked_add<int64_t>(kMax - 1, 1, &sum));
  EXPECT_EQ(sum, kMax);
  EXPECT_FALSE(checked_add<int64_t>(kMax, 1, &sum));
  EXPECT_FALSE(checked_add<int64_t>(kMin, -1, &sum));
  EXPECT_EQ(sum, kMax);
  uint64_t unsigned_sum = 0;
  EXPECT_FALSE(checked_add<uint64_t>(UINT64_MAX, 1, &unsigned_sum));
}

TEST(Checked, MultiplyRefusesWhatDoesNotFitAndKeepsTheOutput) {
  int64_t product = 5;
  EXPECT_TRUE(checked_multiply<int64_t>(int64_t{1} << 31, int64_t{1} << 31, &product));
  EXPECT_EQ(product, int64_t{1} << 62);
  EXPECT_FALSE(checked_multiply<int64_t>(int64_t{1} << 32, int64_t{1} << 31, &product));
  EXPECT_FALSE(checked_multiply<int64_t>(kMin, -1, &product));
  EXPECT_EQ(product, int64_t{1} << 62);
}

TEST(Checked, CastKeepsTheValueOrRefuses) {
  int32_t narrow = 5;
  EXPECT_TRUE(checked_cast<int32_t>(int64_t{-7}, &narrow));
  EXPECT_EQ(narrow, -7);
  EXPECT_FALSE(checked_cast<int32_t>(int64_t{1} << 31, &narrow));
  uint64_t unsigned_value = 5;
  EXPECT_FALSE(checked_cast<uint64_t>(int64_t{-1}, &unsigned_value));
  EXPECT_EQ(narrow, -7);
  EXPECT_EQ(unsigned_value, 5U);
}

TEST(Checked, RoundUpToAPowerOfTwo) {
  uint64_t rounded = 1;
  EXPECT_TRUE(checked_round_up(0, 4096, &rounded));
  EXPECT_EQ(rounded, 0U);
  EXPECT_TRUE(checked_round_up(4097, 4096, &rounded));
  EXPECT_EQ(rounded, 8192U);
  EXPECT_TRUE(checked_round_up(8192, 4096, &rounded));
  EXPECT_EQ(rounded, 8192U);
  EXPECT_TRUE(checked_round_up(7, 1, &rounded));
  EXPECT_EQ(rounded, 7U);
  EXPECT_FALSE(checked_round_up(UINT64_MAX - 10, 4096, &rounded));
  EXPECT_EQ(rounded, 7U);
}

struct CountCase {
  std::vector<int64_t> extents;
  int64_t count;  // -1 = refused
};

class ElementCount : public testing::TestWithParam<CountCase> {};

TEST_P(ElementCount, IsTheProductOrInvalidArgument) {
  const Result<int64_t> count = checked_element_count(GetParam().extents);
  if (GetParam().count < 0) {
    EXPECT_EQ(count.status().code(), StatusCode::kInvalidArgument);
  } else {
    ASSERT_TRUE(count.ok()) << count.status().to_string();
    EXPECT_EQ(*count, GetParam().count);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ElementCount,
                         testing::Values(CountCase{{}, 1}, CountCase{{5}, 5},
                                         CountCase{{2, 3, 4}, 24}, CountCase{{2, 0, 4}, 0},
                                         CountCase{{0}, 0}, CountCase{{kMax}, kMax},
                                         CountCase{{kMax, 1, 1}, kMax}, CountCase{{kMax, 2}, -1},
                                         CountCase{{int64_t{1} << 62, 4, 0}, -1},
                                         CountCase{{0, int64_t{1} << 62, 4}, -1},
                                         CountCase{{-1}, -1}, CountCase{{0, -1}, -1},
                                         CountCase{{kMin}, -1}));

}  // namespace
}  // namespace shardwright

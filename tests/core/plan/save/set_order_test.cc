// SPDX-License-Identifier: Apache-2.0
//
// Walks of Python sets, observed with CPython 3.11.
#include "core/plan/save/set_order_internal.h"

#include <numeric>

#include <gtest/gtest.h>

namespace shardwright::plan::internal {
namespace {

using Values = std::vector<uint32_t>;

TEST(SetOrder, WalksAsPythonDoes) {
  const struct {
    Values owners;
    Values walk;
  } kSets[] = {
      {{}, {}},
      {{0, 8}, {0, 8}},
      {{1, 8}, {8, 1}},
      {{7, 8}, {8, 7}},
      {{6, 7, 8}, {8, 6, 7}},
      {{1, 9}, {1, 9}},
      {{1, 9, 17}, {1, 9, 17}},
      {{31, 32}, {32, 31}},
      {{2, 10, 18}, {18, 2, 10}},
      {{3, 7, 11, 15}, {11, 3, 15, 7}},
      {{4, 12, 20, 28}, {20, 28, 4, 12}},
      {{0, 8, 16, 24, 32}, {0, 32, 8, 16, 24}},
      {{5, 1029}, {1029, 5}},
  };
  for (const auto& set : kSets) EXPECT_EQ(python_set_order(set.owners), set.walk);
}

TEST(SetOrder, RanksFromZeroOnStayInOrder) {
  for (const size_t count : {1U, 5U, 8U, 100U, 1024U}) {
    Values ranks(count);
    std::iota(ranks.begin(), ranks.end(), 0U);
    EXPECT_EQ(python_set_order(ranks), ranks) << count;
  }
}

}  // namespace
}  // namespace shardwright::plan::internal

// SPDX-License-Identifier: Apache-2.0
//
// Dims on both sides of its inline capacity.
#include "core/tensor/dims.h"

#include <numeric>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

std::vector<int64_t> counting(size_t count) {
  std::vector<int64_t> values(count);
  std::iota(values.begin(), values.end(), 1);
  return values;
}

TEST(Dims, CopiesAndMovesAnyCount) {
  for (const size_t count : {size_t{0}, size_t{1}, Dims::kInline, Dims::kInline + 1, size_t{64}}) {
    const std::vector<int64_t> values = counting(count);
    Dims dims{std::span<const int64_t>(values)};
    ASSERT_EQ(dims.size(), count);
    EXPECT_EQ(dims.empty(), count == 0);
    const Dims copy = dims;
    EXPECT_EQ(copy, dims);
    Dims moved = std::move(dims);
    EXPECT_EQ(moved, copy);
    EXPECT_TRUE(dims.empty());  // NOLINT(bugprone-use-after-move): a moved Dims is empty
    dims = std::move(moved);
    EXPECT_EQ(dims, copy);
    EXPECT_TRUE(std::equal(values.begin(), values.end(), dims.begin(), dims.end()));
  }
}

TEST(Dims, ChangesThroughIndexAndIterator) {
  for (const size_t count : {size_t{3}, size_t{12}}) {
    Dims dims(count, 7);
    dims[count - 1] = 9;
    for (int64_t& each : dims) ++each;
    EXPECT_EQ(dims[0], 8);
    EXPECT_EQ(dims[count - 1], 10);
  }
}

TEST(Dims, OrdersLikeAList) {
  EXPECT_LT((Dims{1, 2}), (Dims{1, 3}));
  EXPECT_LT((Dims{1}), (Dims{1, 0}));
  EXPECT_LT(Dims{}, (Dims{0}));
  EXPECT_NE(Dims(9, 1), Dims(10, 1));
  EXPECT_EQ(Dims(9, 1), Dims(9, 1));
}

TEST(Dims, PassesAsASpan) {
  const Dims dims{2, 3};
  const std::span<const int64_t> span = dims;
  EXPECT_EQ(span.size(), 2U);
  EXPECT_EQ(span[1], 3);
  EXPECT_EQ(dims.span().data(), span.data());
}

}  // namespace
}  // namespace shardwright

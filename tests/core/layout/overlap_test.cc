// SPDX-License-Identifier: Apache-2.0
//
// Boxes that share an element. random_layouts_test.cc compares with the oracle.
#include "core/layout/overlap.h"

#include <algorithm>
#include <ctime>
#include <vector>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(FindOverlap, OfFewBoxes) {
  EXPECT_FALSE(find_overlap({}).has_value());
  EXPECT_FALSE(find_overlap(std::vector<Box>{{{0}, {4}}}).has_value());
  EXPECT_FALSE(find_overlap(std::vector<Box>{{{0, 0}, {4, 2}}, {{0, 2}, {4, 2}}}).has_value());
  const auto found = find_overlap(std::vector<Box>{{{0, 0}, {4, 2}}, {{3, 1}, {1, 2}}});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->first + found->second, 1U);
}

TEST(FindOverlap, EmptyBoxesShareNothing) {
  EXPECT_FALSE(find_overlap(std::vector<Box>{{{0}, {4}}, {{2}, {0}}, {{2}, {0}}}).has_value());
}

TEST(FindOverlap, ScalarsOverlap) {
  EXPECT_TRUE(find_overlap(std::vector<Box>{{{}, {}}, {{}, {}}}).has_value());
}

// Cells side by side.
std::vector<Box> grid_of(int64_t rows, int64_t columns) {
  std::vector<Box> boxes;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) boxes.push_back({{r * 3, c * 5}, {3, 5}});
  return boxes;
}

int64_t cost_ns(const std::vector<Box>& boxes) {
  const std::clock_t begin = std::clock();  // of this process: a busy machine does not count
  EXPECT_FALSE(find_overlap(boxes).has_value());
  return static_cast<int64_t>(std::clock() - begin) * (1000000000 / CLOCKS_PER_SEC);
}

// 16 times the boxes may cost at most 64 times the time, far below quadratic (256).
TEST(FindOverlap, CostGrowsWithTheBoxes) {
  for (const bool strips : {false, true}) {
    const auto boxes = [&](int64_t side) {
      return strips ? grid_of(1, side * side) : grid_of(side, side);
    };
    int64_t small = INT64_MAX;
    int64_t large = INT64_MAX;
    for (int round = 0; round < 3; ++round) {
      small = std::min(small, cost_ns(boxes(32)));
      large = std::min(large, cost_ns(boxes(128)));
    }
    EXPECT_LT(large, small * 64 + 20000000) << "1,024 boxes: " << small << " ns, 16,384: " << large;
  }
}

}  // namespace
}  // namespace shardwright

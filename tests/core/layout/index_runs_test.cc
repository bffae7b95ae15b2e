// SPDX-License-Identifier: Apache-2.0
//
// Runs of strided parts.
#include "core/layout/index_runs.h"

#include <limits>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

std::vector<IndexRange> strided(int64_t size, int64_t factor, int64_t parts, int64_t part) {
  IndexRuns runs(size);
  runs.keep_part(parts, part, factor);
  return {runs.runs().begin(), runs.runs().end()};
}

using Ranges = std::vector<IndexRange>;

TEST(IndexRuns, StrideTakesAPartOfEachChunk) {
  EXPECT_EQ(strided(8, 2, 2, 0), (Ranges{{0, 2}, {4, 2}}));
  EXPECT_EQ(strided(8, 2, 2, 1), (Ranges{{2, 2}, {6, 2}}));
  EXPECT_EQ(strided(10, 2, 2, 0), (Ranges{{0, 3}, {5, 3}}));
  EXPECT_EQ(strided(10, 2, 2, 1), (Ranges{{3, 2}, {8, 2}}));
  EXPECT_EQ(strided(7, 3, 2, 1), (Ranges{{2, 1}, {5, 1}}));
}

TEST(IndexRuns, ThatTouchAreOne) {
  EXPECT_EQ(strided(6, 3, 1, 0), (Ranges{{0, 6}}));
  EXPECT_EQ(strided(4, 4, 2, 0), (Ranges{{0, 4}})) << "chunks of one element go to the first part";
  EXPECT_EQ(strided(4, 4, 2, 1), Ranges{});
}

TEST(IndexRuns, FactorOfOneIsAChunk) {
  EXPECT_EQ(strided(10, 1, 4, 3), (Ranges{{9, 1}}));
  EXPECT_EQ(strided(2, 1, 4, 3), Ranges{});
}

TEST(IndexRuns, FactorMayBeLargerThanTheExtent) {
  EXPECT_EQ(strided(3, 100, 1, 0), (Ranges{{0, 3}}));
  EXPECT_EQ(strided(3, 100, 3, 1), Ranges{});
  EXPECT_EQ(strided(0, 5, 2, 1), Ranges{});
}

TEST(IndexRuns, CutsNest) {
  IndexRuns runs(12);
  runs.keep_part(2, 1, 2);  // 3 4 5 9 10 11
  runs.keep_part(2, 0, 3);  // 3 5 10
  EXPECT_EQ(Ranges(runs.runs().begin(), runs.runs().end()), (Ranges{{3, 1}, {5, 1}, {10, 1}}));
  EXPECT_EQ(runs.size(), 3);
}

TEST(IndexRuns, HugeExtentsDoNotOverflow) {
  const Ranges ranges = strided(kMax, 2, 2, 1);
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges[0], (IndexRange{int64_t{1} << 61, int64_t{1} << 61}));
  EXPECT_EQ(ranges[1].begin + ranges[1].size, kMax);
}

}  // namespace
}  // namespace shardwright

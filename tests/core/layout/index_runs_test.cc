// SPDX-License-Identifier: Apache-2.0
//
// The chunk rule, and runs of strided parts.
#include "core/layout/index_runs.h"

#include <limits>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

std::vector<IndexRange> parts_of(int64_t size, int64_t parts) {
  std::vector<IndexRange> list;
  for (int64_t part = 0; part < parts; ++part) list.push_back(chunk_of({0, size}, parts, part));
  return list;
}

std::vector<IndexRange> strided(int64_t size, int64_t factor, int64_t parts, int64_t part) {
  IndexRuns runs(size);
  runs.keep_part(parts, part, factor);
  return {runs.runs().begin(), runs.runs().end()};
}

using Ranges = std::vector<IndexRange>;

TEST(ChunkOf, CutsAsTorchChunkDoes) {
  EXPECT_EQ(parts_of(13, 4), (Ranges{{0, 4}, {4, 4}, {8, 4}, {12, 1}}));
  EXPECT_EQ(parts_of(9, 4), (Ranges{{0, 3}, {3, 3}, {6, 3}, {9, 0}}));
  EXPECT_EQ(parts_of(5, 4), (Ranges{{0, 2}, {2, 2}, {4, 1}, {5, 0}}));
  EXPECT_EQ(parts_of(3, 4), (Ranges{{0, 1}, {1, 1}, {2, 1}, {3, 0}}));
  EXPECT_EQ(parts_of(0, 2), (Ranges{{0, 0}, {0, 0}}));
  EXPECT_EQ(chunk_of({7, 3}, 2, 1), (IndexRange{9, 1}));
}

TEST(ChunkOf, DoesNotOverflow) {
  EXPECT_EQ(chunk_of({0, kMax}, 2, 1), (IndexRange{kMax / 2 + 1, kMax / 2}));
  constexpr int64_t kParts = 1 << 20;
  EXPECT_EQ(chunk_of({0, kMax}, kParts, kParts - 1), (IndexRange{kMax - (kMax >> 20), kMax >> 20}));
  EXPECT_EQ(chunk_of({0, kParts + 1}, kParts, kParts - 1), (IndexRange{kParts + 1, 0}));
}

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

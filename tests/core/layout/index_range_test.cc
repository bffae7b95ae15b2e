// SPDX-License-Identifier: Apache-2.0
//
// The chunk rule.
#include "core/layout/index_range.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

std::vector<IndexRange> parts_of(int64_t size, int64_t parts) {
  std::vector<IndexRange> list;
  for (int64_t part = 0; part < parts; ++part) list.push_back(chunk_of({0, size}, parts, part));
  return list;
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

}  // namespace
}  // namespace shardwright

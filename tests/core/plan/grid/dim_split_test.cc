// SPDX-License-Identifier: Apache-2.0
#include "core/plan/grid/dim_split.h"

#include <numeric>

#include <gtest/gtest.h>

#include "tests/support/random_source.h"
#include "tests/support/run_length.h"

namespace shardwright::plan {
namespace {

using shardwright::test::RandomSource;
using shardwright::test::rounds;

std::vector<int64_t> chunk_sizes(int64_t extent, int64_t parts) {
  std::vector<int64_t> sizes;
  for (int64_t p = 0; p < parts; ++p) {
    const int64_t size = chunk_of({0, extent}, parts, p).size;
    if (size > 0) sizes.push_back(size);
  }
  return sizes;
}

// Each part of a cut is cut again.
std::vector<int64_t> nested_sizes(int64_t extent, int64_t outer, int64_t inner) {
  std::vector<int64_t> sizes;
  for (const int64_t part : chunk_sizes(extent, outer)) {
    const std::vector<int64_t> own = chunk_sizes(part, inner);
    sizes.insert(sizes.end(), own.begin(), own.end());
  }
  return sizes;
}

void expect_says(const DimSplit& split, const std::vector<int64_t>& sizes) {
  ASSERT_EQ(split.part_count(), sizes.size());
  ASSERT_EQ(split.extent(), std::accumulate(sizes.begin(), sizes.end(), int64_t{0}));
  int64_t begin = 0;
  for (size_t p = 0; p < sizes.size(); ++p) {
    ASSERT_EQ(split[p], (IndexRange{begin, sizes[p]})) << p;
    ASSERT_EQ(split.part_at(begin), p);
    ASSERT_EQ(split.part_at(begin + sizes[p] - 1), p);
    begin += sizes[p];
  }
}

void expect_stays_the_same_over_the_wire(const DimSplit& split) {
  const Result<DimSplit> read =
      DimSplit::from_runs({split.runs().begin(), split.runs().end()}, split.repeats());
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(*read, split);
  EXPECT_EQ(read->part_count(), split.part_count());
  EXPECT_EQ(read->extent(), split.extent());
}

TEST(DimSplit, ChunksAreTwoRunsAtMost) {
  for (int64_t extent = 0; extent < 40; ++extent) {
    for (int64_t parts = 1; parts < 20; ++parts) {
      const DimSplit split = DimSplit::of_chunks(extent, parts);
      EXPECT_EQ(split, DimSplit::of_sizes(chunk_sizes(extent, parts)));
      EXPECT_LE(split.runs().size(), 2U);
      expect_says(split, chunk_sizes(extent, parts));
      expect_stays_the_same_over_the_wire(split);
    }
  }
}

TEST(DimSplit, ChunksOfChunksAreFewRuns) {
  for (int64_t extent = 1; extent < 200; extent += 3) {
    for (int64_t outer = 1; outer < 17; ++outer) {
      for (int64_t inner = 1; inner < 9; ++inner) {
        const std::vector<int64_t> sizes = nested_sizes(extent, outer, inner);
        const DimSplit split = DimSplit::of_sizes(sizes);
        EXPECT_LE(split.runs().size(), 6U) << extent << " " << outer << " " << inner;
        expect_says(split, sizes);
        expect_stays_the_same_over_the_wire(split);
      }
    }
  }
}

TEST(DimSplit, RandomSizesComeBack) {
  RandomSource random;
  for (int64_t round = 0; round < rounds(3000, 100000); ++round) {
    const int64_t kinds = random.between(1, 3);
    std::vector<int64_t> sizes(static_cast<size_t>(random.between(0, 40)));
    for (int64_t& size : sizes) size = random.between(1, kinds);
    const DimSplit split = DimSplit::of_sizes(sizes);
    expect_says(split, sizes);
    expect_stays_the_same_over_the_wire(split);
  }
}

TEST(DimSplit, OneFormIsAcceptedOfEachSplit) {
  RandomSource random;
  int64_t accepted = 0;
  for (int64_t round = 0; round < rounds(20000, 1000000); ++round) {
    std::vector<PartRun> runs(static_cast<size_t>(random.between(0, 6)));
    for (PartRun& run : runs)
      run = {static_cast<uint64_t>(random.between(0, 2)), random.between(0, 2)};
    const auto repeats = static_cast<uint64_t>(random.between(0, 3));
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < runs.size(); ++i) {
      // The pair stands once for each repeat, before the rest.
      if (repeats > 0 && i < 2) continue;
      sizes.insert(sizes.end(), runs[i].count, runs[i].size);
    }
    std::vector<int64_t> pair;
    for (size_t i = 0; repeats > 0 && i < std::min<size_t>(runs.size(), 2); ++i)
      pair.insert(pair.end(), runs[i].count, runs[i].size);
    std::vector<int64_t> all;
    for (uint64_t i = 0; i < repeats; ++i) all.insert(all.end(), pair.begin(), pair.end());
    all.insert(all.end(), sizes.begin(), sizes.end());
    const bool has_empty = std::ranges::find(all, 0) != all.end();
    const Result<DimSplit> read = DimSplit::from_runs(runs, repeats);
    if (has_empty) {
      EXPECT_FALSE(read.ok());
      continue;
    }
    const DimSplit split = DimSplit::of_sizes(all);
    const bool same = std::ranges::equal(split.runs(), runs) && split.repeats() == repeats;
    ASSERT_EQ(read.ok(), same);
    accepted += same ? 1 : 0;
  }
  EXPECT_GT(accepted, 0);
}

TEST(DimSplit, SizesThatDoNotFitAreDamage) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(DimSplit::from_runs({{1, kMost}}, 0).ok());
  EXPECT_FALSE(DimSplit::from_runs({{2, kMost}}, 0).ok());
  EXPECT_FALSE(DimSplit::from_runs({{1, kMost}, {1, 1}}, 0).ok());
  EXPECT_FALSE(DimSplit::from_runs({{std::numeric_limits<uint64_t>::max(), 1}}, 0).ok());
  EXPECT_FALSE(DimSplit::from_runs({{1, 1}, {1, kMost / 2}}, 3).ok());
  EXPECT_FALSE(DimSplit::from_runs({{1, 1}, {1, 2}}, std::numeric_limits<uint64_t>::max()).ok());
}

}  // namespace
}  // namespace shardwright::plan

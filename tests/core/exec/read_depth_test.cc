// SPDX-License-Identifier: Apache-2.0
#include "core/exec/read_depth_internal.h"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"

namespace shardwright::exec::internal {
namespace {

constexpr uint64_t kReadBytes = uint64_t{2} << 20;

// Reads come one after the other, each so long after the one before as the storage needs with that
// many on their way. Gives the depth after so many.
template <typename GapOf>
uint32_t depth_after(int reads, uint32_t least, uint32_t most, const GapOf& gap_of) {
  test::FakeClock clock;
  ReadDepth depth(least, most, clock);
  for (int read = 0; read < reads; ++read) {
    clock.advance_ns(gap_of(depth.depth()));
    depth.came(kReadBytes);
  }
  return depth.depth();
}

// A storage that answers after 12 ms however many it is asked for.
int64_t far_away(uint32_t depth) {
  return 12'000'000 / depth;
}

// A disk that gives 2 GiB/s.
int64_t near_by(uint32_t) {
  return 1'000'000;
}

TEST(ReadDepth, StaysWithTheLeastWhereMoreReadsBringNothing) {
  EXPECT_EQ(depth_after(200, 1, 4, near_by), 1u);
  EXPECT_EQ(depth_after(200, 2, 4, near_by), 2u);
  EXPECT_EQ(depth_after(200, 1, 4, [](uint32_t depth) { return 1'000'000 - 50'000 * depth; }), 1u);
}

TEST(ReadDepth, GrowsToTheMostWhereLatencyDecides) {
  EXPECT_EQ(depth_after(200, 1, 4, far_away), 4u);
  EXPECT_EQ(depth_after(200, 2, 4, far_away), 4u);
  EXPECT_EQ(depth_after(200, 4, 4, far_away), 4u);
}

TEST(ReadDepth, StopsWhereTheStorageIsBusy) {
  EXPECT_EQ(
      depth_after(200, 1, 4, [](uint32_t depth) { return 12'000'000 / (depth < 2 ? depth : 2); }),
      2u);
}

TEST(ReadDepth, TriesOneMoreOnlyAfterAWindow) {
  // The first four count for nothing, the fifth opens the window of eight.
  EXPECT_EQ(depth_after(12, 1, 4, near_by), 1u);
  EXPECT_EQ(depth_after(13, 1, 4, near_by), 2u);
}

// What went out before the depth rose says nothing about it, however fast it comes.
TEST(ReadDepth, PassesOverWhatWentOutBefore) {
  int come = 0;
  EXPECT_EQ(depth_after(200, 1, 2, [&come](uint32_t) { return ++come == 14 ? 1 : 1'000'000; }), 1u);
}

TEST(ReadDepth, TakesAClockThatStandsStill) {
  EXPECT_EQ(depth_after(200, 1, 4, [](uint32_t) { return 0; }), 1u);
}

}  // namespace
}  // namespace shardwright::exec::internal

// SPDX-License-Identifier: Apache-2.0
#include "core/exec/shared_schedule_internal.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/support/random_source.h"

namespace shardwright::exec::internal {
namespace {

using Place = std::tuple<uint32_t, uint64_t, uint32_t>;

Place place_of(const WantedBlock& block) {
  return {block.file, block.offset, block.length};
}

// Blocks of some files, side by side or with gaps, of which each sharer wants some.
std::vector<std::vector<SharedBlock>> random_lists(test::RandomSource& random, size_t sharers) {
  std::vector<std::vector<SharedBlock>> lists(sharers);
  for (uint32_t file = 0; file < 3; ++file) {
    uint64_t offset = static_cast<uint64_t>(random.between(0, 5000));
    for (int64_t i = random.between(0, 60); i > 0; --i) {
      const auto length =
          static_cast<uint32_t>(random.chance(60) ? 1 << 20 : random.between(1, 1 << 20));
      const bool by_all = random.chance(50);
      for (auto& list : lists) {
        if (by_all || random.chance(40)) list.push_back({.block = {offset, file, length}});
      }
      offset += length + static_cast<uint64_t>(random.chance(70) ? 0 : random.between(0, 9000));
    }
  }
  return lists;
}

std::vector<SharedBlock> listed(const std::vector<WantedBlock>& blocks) {
  std::vector<SharedBlock> list;
  for (const WantedBlock& block : blocks) list.push_back({.block = block});
  return list;
}

TEST(SharedSchedule, HasEveryBlockOfSeveralOnceAndNoOther) {
  test::RandomSource random;
  for (int round = 0; round < 200; ++round) {
    const auto sharers = static_cast<size_t>(random.between(2, 7));
    const auto lists = random_lists(random, sharers);
    std::map<Place, uint64_t> wanted;
    for (size_t s = 0; s < sharers; ++s) {
      for (const SharedBlock& block : lists[s]) wanted[place_of(block.block)] |= uint64_t{1} << s;
    }
    constexpr uint64_t kMostBytes = 4 << 20;  // of a task, and of a run of tasks of one reader
    const std::vector<SharedTask> tasks = share_blocks(lists, {kMostBytes, 4096, kMostBytes});
    std::array<uint64_t, kMostSharers> read{};
    for (size_t t = 0; t < tasks.size(); ++t) {
      const SharedTask& task = tasks[t];
      ASSERT_TRUE(task.is_of(task.reader));
      ASSERT_GE(std::popcount(task.sharers), 2);
      ASSERT_LE(task.length, kMostBytes);
      read[task.reader] += task.length;
      if (t > 0) {
        ASSERT_LT(std::tuple(tasks[t - 1].file, tasks[t - 1].offset),
                  std::tuple(task.file, task.offset));
      }
    }
    for (const auto& [place, sharing] : wanted) {
      const auto& [file, offset, length] = place;
      const auto holds = [&](const SharedTask& task) {
        return task.file == file && task.offset <= offset &&
               offset + length <= task.offset + task.length;
      };
      const auto found = std::ranges::count_if(tasks, holds);
      ASSERT_EQ(found, std::popcount(sharing) > 1 ? 1 : 0) << "block at " << offset;
      if (found == 1) {
        ASSERT_EQ(std::ranges::find_if(tasks, holds)->sharers, sharing);
      }
    }
    if (std::ranges::all_of(
            tasks, [&](const SharedTask& task) { return task.sharers == tasks.front().sharers; })) {
      for (size_t s = 0; s < sharers; ++s) {
        for (size_t other = 0; other < sharers && !tasks.empty(); ++other) {
          if (!tasks.front().is_of(s) || !tasks.front().is_of(other)) continue;
          EXPECT_LE(read[s], read[other] + kMostBytes);
        }
      }
    }
  }
}

// Formats in which tensors share bytes have such.
TEST(SharedSchedule, LeavesOutBlocksThatBeginInsideATask) {
  const std::vector<std::vector<SharedBlock>> lists{
      listed({{0, 0, 20}, {5, 0, 3}, {15, 0, 20}, {40, 0, 10}}), listed({{0, 0, 20}, {40, 0, 10}}),
      listed({{5, 0, 3}, {15, 0, 20}, {40, 0, 10}})};
  const std::vector<SharedTask> tasks = share_blocks(lists, {1 << 20, 1, 1 << 20});
  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_EQ(tasks[0].offset, 0U);
  EXPECT_EQ(tasks[0].length, 20U);
  EXPECT_EQ(tasks[0].sharers, 3U);
  EXPECT_EQ(tasks[1].offset, 40U);
  EXPECT_EQ(tasks[1].sharers, 7U);
}

TEST(SharedSchedule, GivesEqualWorkToEqualSharers) {
  std::vector<WantedBlock> blocks;
  for (uint64_t i = 0; i < 60; ++i) blocks.push_back({i << 21, 0, 1 << 20});
  const std::vector<std::vector<SharedBlock>> lists(5, listed(blocks));
  std::array<uint64_t, kMostSharers> read{};
  for (const SharedTask& task : share_blocks(lists, {1 << 20, 4096, 1 << 20}))
    read[task.reader] += task.length;
  for (size_t s = 0; s < lists.size(); ++s) EXPECT_EQ(read[s], 12U << 20);
}

TEST(SharedSchedule, JoinsNeighboursUpToATask) {
  std::vector<WantedBlock> blocks;
  for (uint64_t i = 0; i < 9; ++i) blocks.push_back({4096 + (i << 20), 0, 1 << 20});
  const std::vector<std::vector<SharedBlock>> lists{listed(blocks), listed(blocks)};
  const std::vector<SharedTask> tasks = share_blocks(lists, {4 << 20, 4096, 4 << 20});
  ASSERT_EQ(tasks.size(), 3U);
  EXPECT_EQ(tasks[0].length, uint64_t{4} << 20);
  EXPECT_EQ(tasks[2].length, uint64_t{1} << 20);
  EXPECT_NE(tasks[0].reader, tasks[1].reader);
}

// Blocks of an exchange come behind the others, in the order of their rounds, from their taker.
TEST(SharedSchedule, KeepsBlocksOfDifferentRoundsApart) {
  std::vector<SharedBlock> blocks;
  for (uint64_t i = 0; i < 6; ++i) blocks.push_back({.block = {i << 10, 0, 1 << 10}});
  blocks[0].round = 5;
  blocks[1].round = blocks[2].round = 3;
  blocks[1].taker = blocks[2].taker = 1;
  blocks[3].round = 3;
  const std::vector<std::vector<SharedBlock>> lists{blocks, blocks};
  const std::vector<SharedTask> tasks = share_blocks(lists, {1 << 20, 1, 1 << 20});
  ASSERT_EQ(tasks.size(), 4U);
  const auto expect = [&](size_t t, uint64_t offset, uint64_t length, int64_t round,
                          uint32_t reader) {
    EXPECT_EQ(tasks[t].offset, offset) << t;
    EXPECT_EQ(tasks[t].length, length) << t;
    EXPECT_EQ(tasks[t].round, round) << t;
    EXPECT_EQ(tasks[t].reader, reader) << t;
  };
  expect(0, 4 << 10, 2 << 10, SharedBlock::kStored, 0);
  expect(1, 1 << 10, 2 << 10, 3, 1);
  expect(2, 3 << 10, 1 << 10, 3, 0);
  expect(3, 0, 1 << 10, 5, 0);
}

}  // namespace
}  // namespace shardwright::exec::internal

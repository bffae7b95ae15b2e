// SPDX-License-Identifier: Apache-2.0
//
// Joining of needs to reads: nothing is lost, nothing is longer than allowed, gaps are read over
// only when cheap.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/exec/block_reader_internal.h"

namespace shardwright::exec::internal {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

BlockNeed need(uint32_t file, uint64_t offset, uint64_t length) {
  BlockNeed result;
  result.file = file;
  result.offset = offset;
  result.length = static_cast<uint32_t>(length);
  return result;
}

std::vector<ReadTask> tasks_of(std::vector<BlockNeed>* needs,
                               const std::vector<format::FileInfo>& files, bool direct = false) {
  TaskRules rules;
  rules.files = files;
  rules.direct_offered = direct;
  rules.alignment = 4096;
  return make_read_tasks(needs, rules);
}

TEST(ReadTasks, JoinsNeighboursUpToTheTaskLimit) {
  const std::vector<format::FileInfo> files{{"a", 64 * kMiB, 0}};
  std::vector<BlockNeed> needs;
  for (uint64_t i = 10; i-- > 0;) needs.push_back(need(0, 4096 + i * kMiB, kMiB));
  const std::vector<ReadTask> tasks = tasks_of(&needs, files);
  ASSERT_EQ(tasks.size(), 10 * kMiB / kReadTaskBytes);
  EXPECT_EQ(tasks[0].length, kReadTaskBytes);
  EXPECT_EQ(tasks[1].offset, 4096 + kReadTaskBytes);
}

TEST(ReadTasks, ReadsOverSmallGapsAndLeavesLargeOnes) {
  const std::vector<format::FileInfo> files{{"a", 64 * kMiB, 0}};
  std::vector<BlockNeed> needs{need(0, 0, 100), need(0, 128, 100), need(0, 8192, 100),
                               need(0, 2 * kMiB, 100)};
  const std::vector<ReadTask> tasks = tasks_of(&needs, files);
  ASSERT_EQ(tasks.size(), 3U);
  EXPECT_EQ(tasks[0].length, 228U);   // 28 bytes are read over
  EXPECT_EQ(tasks[1].offset, 8192U);  // 7 KiB would be more than a third of what is wanted
  EXPECT_EQ(tasks[2].offset, 2 * kMiB);
}

TEST(ReadTasks, KeepsFilesApart) {
  const std::vector<format::FileInfo> files{{"a", kMiB, 0}, {"b", kMiB, 1}, {"c", kMiB, 2}};
  std::vector<BlockNeed> needs{need(2, 0, 10), need(0, 0, 10), need(2, 10, 10)};
  const std::vector<ReadTask> tasks = tasks_of(&needs, files);
  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_EQ(tasks[0].file, 0U);
  EXPECT_EQ(tasks[0].handle, 0U);
  EXPECT_EQ(tasks[1].file, 2U);
  EXPECT_EQ(tasks[1].handle, 1U);
  EXPECT_EQ(tasks[1].length, 20U);
}

TEST(ReadTasks, WidensDirectReadsToTheAlignmentButNotPastTheFile) {
  const uint64_t size = 32 * kMiB + 100;
  const std::vector<format::FileInfo> files{{"a", size, 0}};
  std::vector<BlockNeed> needs;
  for (uint64_t offset = 512; offset < size; offset += kMiB) {
    needs.push_back(need(0, offset, std::min(kMiB, size - offset)));
  }
  const std::vector<ReadTask> tasks = tasks_of(&needs, files, true);
  for (const ReadTask& task : tasks) {
    if (!task.direct) continue;
    EXPECT_EQ(task.offset % 4096, 0U);
    EXPECT_TRUE(task.length % 4096 == 0 || task.offset + task.length == size);
    EXPECT_LE(task.length, kReadTaskBytes);
  }
  EXPECT_TRUE(tasks.front().direct);
}

TEST(ReadTasks, HoldsEveryNeedOnceWhateverTheyAre) {
  std::mt19937_64 random(99);
  for (int round = 0; round < 300; ++round) {
    const std::vector<format::FileInfo> files{{"a", 40 * kMiB, 0}, {"b", 40 * kMiB, 1}};
    std::vector<BlockNeed> needs;
    const size_t count = 1 + random() % 60;
    for (size_t i = 0; i < count; ++i) {
      needs.push_back(need(random() % 2, random() % (39 * kMiB), 1 + random() % kMiB));
    }
    const std::vector<ReadTask> tasks = tasks_of(&needs, files, round % 2 == 0);
    size_t next = 0;
    for (const ReadTask& task : tasks) {
      ASSERT_EQ(task.first, next);
      ASSERT_LE(task.length, kReadTaskBytes);
      for (; next < task.last; ++next) {
        ASSERT_EQ(needs[next].file, task.file);
        ASSERT_GE(needs[next].offset, task.offset);
        ASSERT_LE(needs[next].offset + needs[next].length, task.offset + task.length);
      }
    }
    ASSERT_EQ(next, needs.size());
  }
}

}  // namespace
}  // namespace shardwright::exec::internal

// SPDX-License-Identifier: Apache-2.0
#include "core/exec/write_tasks_internal.h"

#include <gtest/gtest.h>

#include "core/base/limits.h"
#include "tests/support/random_source.h"

namespace shardwright::exec::internal {
namespace {

constexpr uint64_t kCapacity = kWriteBlockBytes;

uint64_t round_up(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

using format::FileLayout;
using format::PlacedItem;

FileLayout layout_of(const std::vector<uint64_t>& sizes) {
  FileLayout layout;
  uint64_t end = kExtentAlignmentBytes;
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    const bool large = sizes[i] >= kSlabChunkLimitBytes;
    const uint64_t position =
        sizes[i] == 0 ? end : round_up(end, large ? kExtentAlignmentBytes : kSlabAlignmentBytes);
    layout.items.push_back({i, position, sizes[i]});
    end = position + sizes[i];
  }
  layout.data_bytes = sizes.empty() ? 0 : end;
  return layout;
}

// All that make_write_tasks promises.
void check_tasks(const FileLayout& layout, const std::vector<WriteTask>& tasks) {
  uint64_t end = 0;
  for (const WriteTask& task : tasks) {
    ASSERT_EQ(task.begin, end);
    ASSERT_GT(task.end, task.begin);
    ASSERT_LE(task.end - task.begin, kCapacity);
    ASSERT_EQ(task.end % kExtentAlignmentBytes, 0U);
    end = task.end;
    size_t first = 0;
    while (first < layout.items.size() &&
           (layout.items[first].size_bytes == 0 ||
            layout.items[first].position + layout.items[first].size_bytes <= task.begin)) {
      ++first;
    }
    // Items before the first one may be skipped over, items behind it may not.
    for (size_t i = std::min(first, task.first_item); i < task.first_item; ++i) {
      ASSERT_TRUE(i >= layout.items.size() || layout.items[i].size_bytes == 0 ||
                  layout.items[i].position >= task.end)
          << "item " << i << " is left out of the task at " << task.begin;
    }
  }
  ASSERT_EQ(end,
            round_up(std::max(layout.data_bytes, kExtentAlignmentBytes), kExtentAlignmentBytes));
  for (const PlacedItem& item : layout.items) {
    if (item.size_bytes < kSlabChunkLimitBytes) continue;
    for (const WriteTask& task : tasks) {
      const bool inside = task.end > item.position && task.end < item.position + item.size_bytes;
      if (inside) {
        ASSERT_EQ((task.end - item.position) % kDigestBlockBytes, 0U);
      }
    }
  }
}

TEST(WriteTasks, HoldDigestBlocksWholeWhateverTheSizes) {
  test::RandomSource random;
  for (int round = 0; round < 300; ++round) {
    std::vector<uint64_t> sizes;
    const int64_t count = random.between(0, 60);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t kind = random.between(0, 5);
      const int64_t most = kind == 0 ? 0 : kind < 3 ? 70'000 : kind < 5 ? 3'000'000 : 30'000'000;
      sizes.push_back(static_cast<uint64_t>(random.between(0, most)));
    }
    const FileLayout layout = layout_of(sizes);
    check_tasks(layout, make_write_tasks(layout, {kCapacity}));
  }
}

TEST(WriteTasks, AHundredThousandSmallItemsMakeFewTasks) {
  const FileLayout layout = layout_of(std::vector<uint64_t>(100'000, 1024));
  const std::vector<WriteTask> tasks = make_write_tasks(layout, {kCapacity});
  EXPECT_EQ(tasks.size(), 25U);
  check_tasks(layout, tasks);
}

TEST(WriteTasks, ItemsWithoutBytesNeedTheHeaderOnly) {
  const std::vector<WriteTask> tasks = make_write_tasks(layout_of({0, 0}), {kCapacity});
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(tasks[0].end, kExtentAlignmentBytes);
}

// Ranges of items that touch each other, gaps between them, and parts of scattered items.
FileLayout shared_layout(test::RandomSource& random) {
  FileLayout layout;
  layout.is_own = false;
  uint64_t end = static_cast<uint64_t>(random.between(8, 5000));
  for (uint32_t i = 0; i < 40; ++i) {
    PlacedItem item{i, end,
                    static_cast<uint64_t>(random.between(0, i % 3 == 0 ? 9'000'000 : 40'000))};
    if (random.between(0, 3) == 0) item.position += static_cast<uint64_t>(random.between(1, 9000));
    if (random.between(0, 7) == 0) item.scatter = 0;
    end = item.position + item.size_bytes;
    layout.items.push_back(item);
  }
  layout.data_bytes = end;
  return layout;
}

TEST(WriteTasks, OfASharedFileCoverItemsAndNothingElse) {
  test::RandomSource random;
  for (int round = 0; round < 200; ++round) {
    const FileLayout layout = shared_layout(random);
    for (const bool in_blocks : {false, true}) {
      const std::vector<WriteTask> tasks = make_write_tasks(layout, {kCapacity, in_blocks});
      size_t next = 0;  // task
      uint64_t done = 0;
      for (size_t i = 0; i < layout.items.size(); ++i) {
        const PlacedItem& item = layout.items[i];
        const bool is_scattered = item.scatter != PlacedItem::kTogether;
        const uint64_t begin = is_scattered ? 0 : item.position;
        for (uint64_t at = begin; at < begin + item.size_bytes;) {
          ASSERT_LT(next, tasks.size());
          const WriteTask& task = tasks[next];
          ASSERT_EQ(task.is_scattered, is_scattered);
          ASSERT_LE(task.begin, at);
          ASSERT_LE(task.end - task.begin, kCapacity);
          if (at == task.begin) {
            ASSERT_LE(task.first_item, i);
            for (size_t before = task.first_item; before < i; ++before)
              ASSERT_EQ(layout.items[before].size_bytes, 0U);
          }
          const uint64_t end = std::min(task.end, begin + item.size_bytes);
          const bool is_cut = end < begin + item.size_bytes;
          if (is_cut) {
            ASSERT_EQ(in_blocks ? (end - begin) % kDigestBlockBytes : end % kExtentAlignmentBytes,
                      0U);
          }
          done += end - at;
          at = end;
          next += task.end == end ? 1 : 0;
        }
      }
      EXPECT_EQ(next, tasks.size());
      uint64_t covered = 0;
      for (const WriteTask& task : tasks) covered += task.end - task.begin;
      EXPECT_EQ(covered, done);
    }
  }
}

}  // namespace
}  // namespace shardwright::exec::internal

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

plan::WriteList list_of(const std::vector<uint64_t>& sizes) {
  plan::WriteList list;
  uint64_t end = kExtentAlignmentBytes;
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    const bool large = sizes[i] >= kSlabChunkLimitBytes;
    const uint64_t position =
        sizes[i] == 0 ? end : round_up(end, large ? kExtentAlignmentBytes : kSlabAlignmentBytes);
    list.items.push_back({i, 0, position, sizes[i]});
    end = position + sizes[i];
  }
  list.data_bytes = sizes.empty() ? 0 : end;
  return list;
}

// All that make_write_tasks promises.
void check_tasks(const plan::WriteList& list, const std::vector<WriteTask>& tasks) {
  uint64_t end = 0;
  for (const WriteTask& task : tasks) {
    ASSERT_EQ(task.begin, end);
    ASSERT_GT(task.end, task.begin);
    ASSERT_LE(task.end - task.begin, kCapacity);
    ASSERT_EQ(task.end % kExtentAlignmentBytes, 0U);
    end = task.end;
    size_t first = 0;
    while (first < list.items.size() &&
           (list.items[first].size_bytes == 0 ||
            list.items[first].position + list.items[first].size_bytes <= task.begin)) {
      ++first;
    }
    // Items before the first one may be skipped over, items behind it may not.
    for (size_t i = std::min(first, task.first_item); i < task.first_item; ++i) {
      ASSERT_TRUE(i >= list.items.size() || list.items[i].size_bytes == 0 ||
                  list.items[i].position >= task.end)
          << "item " << i << " is left out of the task at " << task.begin;
    }
  }
  ASSERT_EQ(end, round_up(std::max(list.data_bytes, kExtentAlignmentBytes), kExtentAlignmentBytes));
  for (const plan::WriteItem& item : list.items) {
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
    const plan::WriteList list = list_of(sizes);
    const auto tasks = make_write_tasks(list, kCapacity);
    ASSERT_TRUE(tasks.ok()) << tasks.status().to_string();
    check_tasks(list, *tasks);
  }
}

TEST(WriteTasks, AHundredThousandSmallItemsMakeFewTasks) {
  const plan::WriteList list = list_of(std::vector<uint64_t>(100'000, 1024));
  const auto tasks = make_write_tasks(list, kCapacity);
  ASSERT_TRUE(tasks.ok());
  EXPECT_EQ(tasks->size(), 25U);
  check_tasks(list, *tasks);
}

TEST(WriteTasks, ItemsWithoutBytesNeedTheHeaderOnly) {
  const plan::WriteList list = list_of({0, 0});
  const auto tasks = make_write_tasks(list, kCapacity);
  ASSERT_TRUE(tasks.ok());
  ASSERT_EQ(tasks->size(), 1U);
  EXPECT_EQ((*tasks)[0].end, kExtentAlignmentBytes);
}

TEST(WriteTasks, RefusesListsThatBreakTheRules) {
  const plan::WriteList good = list_of({100'000, 100'000, 100, 100});
  const auto refused = [&](const auto& change) {
    plan::WriteList bad = good;
    change(&bad);
    return make_write_tasks(bad, kCapacity).status().code();
  };
  ASSERT_TRUE(make_write_tasks(good, kCapacity).ok());
  const StatusCode kRefused = StatusCode::kFailedPrecondition;
  EXPECT_EQ(refused([](auto* list) { list->items[1].position -= 4096; }), kRefused);
  EXPECT_EQ(refused([](auto* list) { list->items[3].position += 1; }), kRefused);
  EXPECT_EQ(refused([](auto* list) { list->items[3].position += 1 << 20; }), kRefused);
  EXPECT_EQ(refused([](auto* list) { list->items[0].position = 0; }), kRefused);
  EXPECT_EQ(refused([](auto* list) { list->items[3].size_bytes = UINT64_MAX; }), kRefused);
  EXPECT_EQ(refused([](auto* list) { list->data_bytes += 1; }), kRefused);
  EXPECT_EQ(refused([](auto* list) { std::swap(list->items[0], list->items[1]); }), kRefused);
}

}  // namespace
}  // namespace shardwright::exec::internal

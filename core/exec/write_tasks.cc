// SPDX-License-Identifier: Apache-2.0
//
// One pass over the items of a file and their digest blocks.
#include <algorithm>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/exec/write_tasks_internal.h"

namespace shardwright::exec::internal {
namespace {

class TaskCutter {
 public:
  explicit TaskCutter(uint64_t capacity_bytes) : capacity_(capacity_bytes) {}

  // Bytes that may lie across a cut.
  void add_small(size_t item, uint64_t end) {
    first_of_next_ = item;
    while (end > limit()) cut(limit());
    note(item);
  }
  // Bytes that may not; begin is a multiple of 4 KiB.
  void add_block(size_t item, uint64_t begin, uint64_t end) {
    first_of_next_ = item;
    if (end > limit()) cut(begin);
    note(item);
  }
  std::vector<WriteTask> finish(uint64_t end, size_t item_count) {
    first_of_next_ = item_count;
    if (end > begin_) cut(end);
    return std::move(tasks_);
  }

 private:
  uint64_t limit() const { return begin_ + capacity_; }
  void note(size_t item) {
    if (!noted_) first_item_ = item;
    noted_ = true;
  }
  void cut(uint64_t at) {
    tasks_.push_back({begin_, at, noted_ ? first_item_ : first_of_next_});
    begin_ = at;
    noted_ = false;
  }

  const uint64_t capacity_;
  uint64_t begin_ = 0;
  size_t first_item_ = 0;
  size_t first_of_next_ = 0;
  bool noted_ = false;
  std::vector<WriteTask> tasks_;
};

std::vector<WriteTask> own_file_tasks(const format::FileLayout& layout, uint64_t capacity_bytes) {
  TaskCutter cutter(capacity_bytes);
  for (size_t i = 0; i < layout.items.size(); ++i) {
    const format::PlacedItem& item = layout.items[i];
    if (item.size_bytes == 0) continue;
    const uint64_t item_end = item.position + item.size_bytes;
    if (item.size_bytes < kSlabChunkLimitBytes) {
      cutter.add_small(i, item_end);
      continue;
    }
    for (uint64_t begin = item.position; begin < item_end; begin += kDigestBlockBytes)
      cutter.add_block(i, begin, std::min(begin + kDigestBlockBytes, item_end));
  }
  uint64_t end = 0;  // fits: data end below 2^62
  static_cast<void>(checked_round_up(std::max(layout.data_bytes, kExtentAlignmentBytes),
                                     kExtentAlignmentBytes, &end));
  return cutter.finish(end, layout.items.size());
}

// Items that touch each other become one range, which is cut anywhere.
std::vector<WriteTask> shared_file_tasks(const format::FileLayout& layout,
                                         uint64_t capacity_bytes) {
  std::vector<WriteTask> tasks;
  const auto next_cut = [capacity_bytes](uint64_t begin) {
    return (begin + capacity_bytes) / kExtentAlignmentBytes * kExtentAlignmentBytes;
  };
  for (size_t i = 0; i < layout.items.size(); ++i) {
    const format::PlacedItem& item = layout.items[i];
    const bool is_scattered = item.scatter != format::PlacedItem::kTogether;
    uint64_t begin = is_scattered ? 0 : item.position;
    const uint64_t end = begin + item.size_bytes;
    if (!is_scattered && !tasks.empty() && !tasks.back().is_scattered &&
        tasks.back().end == begin) {
      begin = std::min(end, next_cut(tasks.back().begin));
      tasks.back().end = begin;
    }
    for (; begin < end; begin = tasks.back().end)
      tasks.push_back({begin, std::min(end, next_cut(begin)), i, is_scattered});
  }
  return tasks;
}

}  // namespace

std::vector<WriteTask> make_write_tasks(const format::FileLayout& layout, uint64_t capacity_bytes) {
  return layout.is_own ? own_file_tasks(layout, capacity_bytes)
                       : shared_file_tasks(layout, capacity_bytes);
}

}  // namespace shardwright::exec::internal

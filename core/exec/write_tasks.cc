// SPDX-License-Identifier: Apache-2.0
//
// Cuts a file into tasks, in one pass over its items and digest blocks.
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

}  // namespace

std::vector<WriteTask> make_write_tasks(const format::native::FileLayout& layout,
                                        uint64_t capacity_bytes) {
  TaskCutter cutter(capacity_bytes);
  for (size_t i = 0; i < layout.items.size(); ++i) {
    const format::native::PlacedItem& item = layout.items[i];
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

}  // namespace shardwright::exec::internal

// SPDX-License-Identifier: Apache-2.0
//
// One pass over the items of a file and their digest blocks.
#include <algorithm>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/exec/write_tasks_internal.h"

namespace shardwright::exec::internal {
namespace {

// Cuts a range of a file.
class TaskCutter {
 public:
  TaskCutter(uint64_t begin, uint64_t capacity_bytes, std::vector<WriteTask>* tasks,
             WriteTask::Part part = WriteTask::Part::kAll)
      : capacity_(capacity_bytes), part_(part), begin_(begin), tasks_(tasks) {}

  // Bytes that may lie across a cut.
  void add_small(size_t item, uint64_t end) {
    first_of_next_ = item;
    while (end > limit()) cut(limit());
    note(item);
  }
  // Digest blocks that may not.
  void add_blocks(size_t item, uint64_t begin, uint64_t end) {
    first_of_next_ = item;
    for (; begin < end; begin += kDigestBlockBytes) {
      if (std::min(begin + kDigestBlockBytes, end) > limit()) cut(begin);
      note(item);
    }
  }
  void finish(uint64_t end, size_t item_count) {
    first_of_next_ = item_count;
    if (end > begin_) cut(end);
  }

 private:
  uint64_t limit() const {
    return (begin_ + capacity_) / kExtentAlignmentBytes * kExtentAlignmentBytes;
  }
  void note(size_t item) {
    if (!noted_) first_item_ = item;
    noted_ = true;
  }
  void cut(uint64_t at) {
    tasks_->push_back({begin_, at, noted_ ? first_item_ : first_of_next_, false, part_});
    begin_ = at;
    noted_ = false;
  }

  uint64_t capacity_;
  WriteTask::Part part_;
  uint64_t begin_;
  size_t first_item_ = 0;
  size_t first_of_next_ = 0;
  bool noted_ = false;
  std::vector<WriteTask>* tasks_;
};

uint64_t down_to_block(uint64_t offset) {
  return offset / kExtentAlignmentBytes * kExtentAlignmentBytes;
}
// Fits: all that is placed ends below 2^62.
uint64_t up_to_block(uint64_t offset) {
  return down_to_block(offset + kExtentAlignmentBytes - 1);
}

uint64_t own_file_end(const format::FileLayout& layout) {
  return up_to_block(std::max(layout.data_bytes, kExtentAlignmentBytes));
}

std::vector<WriteTask> own_file_tasks(const format::FileLayout& layout, uint64_t capacity_bytes) {
  std::vector<WriteTask> tasks;
  TaskCutter cutter(0, capacity_bytes, &tasks);
  for (size_t i = 0; i < layout.items.size(); ++i) {
    const format::PlacedItem& item = layout.items[i];
    const uint64_t end = layout.wrapped_end(item);
    if (layout.wrapped_begin(item) == end) continue;
    if (is_large(item)) {
      cutter.add_small(i, item.position);
      cutter.add_blocks(i, item.position, item.position + item.size_bytes);
    }
    cutter.add_small(i, end);
  }
  cutter.finish(own_file_end(layout), layout.items.size());
  return tasks;
}

// Large items, then what lies around them.
std::vector<WriteTask> wrapped_file_tasks(const format::FileLayout& layout,
                                          uint64_t capacity_bytes) {
  std::vector<WriteTask> tasks;
  std::vector<WriteTask> around;
  TaskCutter cutter(0, capacity_bytes, &around, WriteTask::Part::kAround);
  for (size_t i = 0; i < layout.items.size(); ++i) {
    const format::PlacedItem& item = layout.items[i];
    const uint64_t end = layout.wrapped_end(item);
    if (is_large(item)) {
      const uint64_t item_end = item.position + item.size_bytes;
      if (layout.wrapped_begin(item) < item.position) cutter.add_small(i, item.position);
      cutter.finish(item.position, i);
      TaskCutter blocks(item.position, capacity_bytes, &tasks, WriteTask::Part::kItem);
      blocks.add_blocks(i, item.position, item_end);
      blocks.finish(up_to_block(item_end), i);
      cutter =
          TaskCutter(down_to_block(item_end), capacity_bytes, &around, WriteTask::Part::kAround);
    }
    cutter.add_small(i, end);
  }
  cutter.finish(own_file_end(layout), layout.items.size());
  tasks.insert(tasks.end(), around.begin(), around.end());
  return tasks;
}

std::vector<WriteTask> shared_file_tasks(const format::FileLayout& layout, uint64_t capacity_bytes,
                                         bool in_blocks) {
  std::vector<WriteTask> tasks;
  const auto add = [in_blocks](TaskCutter* cutter, size_t item, uint64_t begin, uint64_t end) {
    in_blocks ? cutter->add_blocks(item, begin, end) : cutter->add_small(item, end);
  };
  for (size_t i = 0; i < layout.items.size();) {
    const format::PlacedItem& first = layout.items[i];
    const bool is_scattered = first.scatter != format::PlacedItem::kTogether;
    const uint64_t begin = is_scattered ? 0 : first.position;
    uint64_t end = begin;
    TaskCutter cutter(begin, capacity_bytes, &tasks);
    const size_t first_task = tasks.size();
    do {  // items that touch each other
      add(&cutter, i, end, end + layout.items[i].size_bytes);
      end += layout.items[i].size_bytes;
      ++i;
    } while (!is_scattered && i < layout.items.size() &&
             layout.items[i].scatter == format::PlacedItem::kTogether &&
             layout.items[i].position == end);
    cutter.finish(end, i);
    for (size_t t = first_task; t < tasks.size(); ++t) tasks[t].is_scattered = is_scattered;
  }
  return tasks;
}

}  // namespace

std::vector<WriteTask> make_write_tasks(const format::FileLayout& layout,
                                        const CuttingRules& rules) {
  if (!layout.is_own) return shared_file_tasks(layout, rules.capacity_bytes, rules.in_blocks);
  return layout.wrappings.empty() || rules.in_order
             ? own_file_tasks(layout, rules.capacity_bytes)
             : wrapped_file_tasks(layout, rules.capacity_bytes);
}

}  // namespace shardwright::exec::internal

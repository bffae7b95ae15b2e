// SPDX-License-Identifier: Apache-2.0
//
// Cuts a write list into tasks, in one pass over its items and digest blocks.
#include <algorithm>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/exec/write_tasks_internal.h"

namespace shardwright::exec::internal {
namespace {

Status bad_list(const plan::WriteList& list, size_t item, std::string_view why) {
  return failed_precondition(fmt::format("item {} of the write list of rank {} ({} bytes at offset "
                                         "{}) {}",
                                         item, list.rank, list.items[item].size_bytes,
                                         list.items[item].position, why))
      .with_detail("rank", fmt::to_string(list.rank))
      .with_detail("offset", fmt::to_string(list.items[item].position));
}

// The list came from another rank: what the cut relies on is proved first.
Status check_positions(const plan::WriteList& list) {
  uint64_t end = kExtentAlignmentBytes;
  for (size_t i = 0; i < list.items.size(); ++i) {
    const plan::WriteItem& item = list.items[i];
    const bool large = item.size_bytes >= kSlabChunkLimitBytes;
    const uint64_t alignment = large ? kExtentAlignmentBytes : kSlabAlignmentBytes;
    if (item.position < end) return bad_list(list, i, "overlaps what is before it");
    if (item.position - end >= kExtentAlignmentBytes) return bad_list(list, i, "leaves a gap");
    if (item.size_bytes != 0 && item.position % alignment != 0)
      return bad_list(list, i, fmt::format("is not aligned to {} bytes", alignment));
    if (!checked_add(item.position, item.size_bytes, &end))
      return bad_list(list, i, "is beyond what a file can hold");
  }
  if (list.items.empty() || end == list.data_bytes) return {};
  return bad_list(list, list.items.size() - 1,
                  fmt::format("is the last one, but data end at {}", list.data_bytes));
}

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

Result<std::vector<WriteTask>> make_write_tasks(const plan::WriteList& list,
                                                uint64_t capacity_bytes) {
  SHW_RETURN_IF_ERROR(check_positions(list));
  TaskCutter cutter(capacity_bytes);
  for (size_t i = 0; i < list.items.size(); ++i) {
    const plan::WriteItem& item = list.items[i];
    if (item.size_bytes == 0) continue;
    const uint64_t item_end = item.position + item.size_bytes;
    if (item.size_bytes < kSlabChunkLimitBytes) {
      cutter.add_small(i, item_end);
      continue;
    }
    for (uint64_t begin = item.position; begin < item_end; begin += kDigestBlockBytes)
      cutter.add_block(i, begin, std::min(begin + kDigestBlockBytes, item_end));
  }
  uint64_t end = 0;
  if (!checked_round_up(std::max(list.data_bytes, kExtentAlignmentBytes), kExtentAlignmentBytes,
                        &end)) {
    return failed_precondition("the write list is beyond what a file can hold");
  }
  return cutter.finish(end, list.items.size());
}

}  // namespace shardwright::exec::internal

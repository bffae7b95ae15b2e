// SPDX-License-Identifier: Apache-2.0
//
// One merge of the lists.
#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <tuple>

#include "core/exec/shared_schedule_internal.h"

namespace shardwright::exec::internal {
namespace {

// Where each list is; the heads of those that are not at their end make a heap.
class Merge {
 public:
  explicit Merge(std::span<const std::vector<SharedBlock>> lists)
      : lists_(lists), next_(lists.size(), 0) {
    for (size_t list = 0; list < lists.size(); ++list) push(list);
  }
  // The least block that is left and who wants it, the same way as the first of them.
  bool next(SharedBlock* block, uint64_t* sharers) {
    if (heap_.empty()) return false;
    *block = lists_[heap_.front()][next_[heap_.front()]];
    *sharers = 0;
    while (!heap_.empty() && head(heap_.front()).place() == block->block.place()) {
      std::ranges::pop_heap(heap_, later_);
      const size_t list = heap_.back();
      heap_.pop_back();
      const SharedBlock& entry = lists_[list][next_[list]];
      if (entry.round == block->round && entry.taker == block->taker)
        *sharers |= uint64_t{1} << list;
      ++next_[list];
      push(list);
    }
    return true;
  }

 private:
  const WantedBlock& head(size_t list) const { return lists_[list][next_[list]].block; }
  void push(size_t list) {
    if (next_[list] == lists_[list].size()) return;
    heap_.push_back(list);
    std::ranges::push_heap(heap_, later_);
  }

  std::span<const std::vector<SharedBlock>> lists_;
  std::vector<size_t> next_;
  std::vector<size_t> heap_;
  const std::function<bool(size_t, size_t)> later_ = [this](size_t a, size_t b) {
    return head(b).place() < head(a).place();
  };
};

class TaskMaker {
 public:
  explicit TaskMaker(const ShareRules& rules) : rules_(rules) {}

  void add(const SharedBlock& shared, uint64_t sharers) {
    const WantedBlock& block = shared.block;
    if (std::popcount(sharers) < 2 || overlaps_last(block)) {
      open_ = false;  // no task reaches over it
      return;
    }
    const SharedTask task{block.file,   shared.taker, block.offset,
                          block.length, sharers,      shared.round};
    if (open_ && joins(tasks_.back(), task)) {
      tasks_.back().length = block.offset + block.length - tasks_.back().offset;
      return;
    }
    tasks_.push_back(task);
    open_ = true;
  }

  std::vector<SharedTask> finish() {
    std::array<uint64_t, kMostSharers> bytes{};
    uint64_t run_begin = 0;
    for (size_t t = 0; t < tasks_.size(); ++t) {
      SharedTask& task = tasks_[t];
      if (task.round != SharedBlock::kStored) continue;
      if (t > 0 && goes_on(tasks_[t - 1], run_begin, task)) {
        task.reader = tasks_[t - 1].reader;
      } else {
        task.reader = least_read(bytes, task);
        run_begin = task.offset;
      }
      bytes[task.reader] += task.length;
    }
    std::ranges::stable_sort(tasks_, {}, &SharedTask::round);
    return std::move(tasks_);
  }

 private:
  static uint32_t least_read(const std::array<uint64_t, kMostSharers>& bytes,
                             const SharedTask& task) {
    size_t least = kMostSharers;
    for (size_t s = 0; s < kMostSharers; ++s) {
      if (task.is_of(s) && (least == kMostSharers || bytes[s] < bytes[least])) least = s;
    }
    return static_cast<uint32_t>(least);
  }

  bool goes_on(const SharedTask& last, uint64_t run_begin, const SharedTask& task) const {
    return is_beside(last, task.file, task.offset) && last.sharers == task.sharers &&
           last.round == task.round && task.offset + task.length - run_begin <= rules_.run_bytes;
  }

  bool is_beside(const SharedTask& task, uint32_t file, uint64_t offset) const {
    const uint64_t end = task.offset + task.length;
    return task.file == file && offset >= end && offset - end <= rules_.alignment;
  }

  bool overlaps_last(const WantedBlock& block) const {
    if (tasks_.empty() || tasks_.back().file != block.file) return false;
    return block.offset < tasks_.back().offset + tasks_.back().length;
  }

  bool joins(const SharedTask& last, const SharedTask& task) const {
    if (!is_beside(last, task.file, task.offset) || last.sharers != task.sharers ||
        last.round != task.round || last.reader != task.reader)
      return false;
    const uint64_t begin = last.offset / rules_.alignment * rules_.alignment;
    const uint64_t new_end =
        (task.offset + task.length + rules_.alignment - 1) / rules_.alignment * rules_.alignment;
    return new_end - begin <= rules_.most_bytes;
  }

  const ShareRules rules_;
  std::vector<SharedTask> tasks_;
  bool open_ = false;  // the last one may grow
};

}  // namespace

std::vector<SharedTask> share_blocks(std::span<const std::vector<SharedBlock>> lists,
                                     const ShareRules& rules) {
  Merge merge(lists);
  TaskMaker maker(rules);
  SharedBlock block;
  uint64_t sharers = 0;
  while (merge.next(&block, &sharers)) maker.add(block, sharers);
  return maker.finish();
}

}  // namespace shardwright::exec::internal

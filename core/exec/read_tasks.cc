// SPDX-License-Identifier: Apache-2.0
//
// Steps 1 and 2 of reading: sort what is needed and join neighbours to large reads.
#include <algorithm>
#include <tuple>

#include "core/exec/block_reader_internal.h"

namespace shardwright::exec::internal {
namespace {

bool before(const BlockNeed& a, const BlockNeed& b) {
  return std::tie(a.file, a.offset, a.length, a.item) <
         std::tie(b.file, b.offset, b.length, b.item);
}

uint64_t need_end(const BlockNeed& need) {
  return need.offset + need.length;
}

// Where a read of whole units ends; a file's own end may cut it.
uint64_t end_in_units(uint64_t end, uint64_t alignment, uint64_t file_bytes) {
  return std::max(end, std::min(file_bytes, (end + alignment - 1) / alignment * alignment));
}

// A derived file is no file of the storage: its bytes are made of others.
bool is_stored(uint32_t file, const TaskRules& rules) {
  return file < rules.files.size();
}

uint64_t bytes_needed(std::span<const BlockNeed> needs) {
  uint64_t total = 0;
  uint64_t end = 0;
  for (const BlockNeed& need : needs) {
    total += need_end(need) - std::clamp(end, need.offset, need_end(need));
    end = std::max(end, need_end(need));
  }
  return total;
}

// The needs of one file on their way to tasks.
class FileTasks {
 public:
  FileTasks(const TaskRules& rules, const std::vector<BlockNeed>& needs,
            std::vector<ReadTask>* tasks)
      : rules_(rules), needs_(needs), tasks_(tasks) {}

  void add_file(size_t first, size_t last) {
    const uint32_t file = needs_[first].file;
    file_bytes_ = is_stored(file, rules_) ? rules_.files[file].size_bytes : 0;
    direct_ = rules_.direct_offered && is_stored(file, rules_) &&
              bytes_needed(std::span(needs_).subspan(first, last - first)) >= kDirectFileBytes;
    alignment_ = direct_ ? rules_.alignment : 1;
    ++files_;
    start(first);
    for (size_t i = first + 1; i < last; ++i) {
      if (joins(needs_[i])) {
        needed_ += need_end(needs_[i]) - std::clamp(end_, needs_[i].offset, need_end(needs_[i]));
        end_ = std::max(end_, need_end(needs_[i]));
      } else {
        finish(i);
        start(i);
      }
    }
    finish(last);
  }

 private:
  void start(size_t first) {
    first_ = first;
    begin_ = needs_[first].offset;
    end_ = need_end(needs_[first]);
    needed_ = needs_[first].length;
  }

  bool joins(const BlockNeed& need) const {
    const uint64_t end = std::max(end_, need_end(need));
    const uint64_t gap = need.offset > end_ ? need.offset - end_ : 0;
    if (rounded_end(end) - rounded_begin() > kReadTaskBytes) return false;
    if (gap <= kFreeGapBytes) return true;
    const uint64_t needed = needed_ + need.length;
    return gap <= kMaxGapBytes && (end - begin_) * 10 <= needed * kMaxOverReadTenths;
  }

  uint64_t rounded_begin() const { return begin_ / alignment_ * alignment_; }
  uint64_t rounded_end(uint64_t end) const { return end_in_units(end, alignment_, file_bytes_); }

  void finish(size_t last) {
    ReadTask task;
    task.file = needs_[first_].file;
    task.handle = files_ - 1;
    task.offset = begin_;
    task.length = end_ - begin_;
    task.first = first_;
    task.last = last;
    tasks_->push_back(direct_ ? rounded_task(task, rules_) : task);
  }

  const TaskRules& rules_;
  const std::vector<BlockNeed>& needs_;
  std::vector<ReadTask>* tasks_;
  uint32_t files_ = 0;  // so far
  uint64_t file_bytes_ = 0;
  uint64_t alignment_ = 1;
  bool direct_ = false;
  size_t first_ = 0;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  uint64_t needed_ = 0;
};

}  // namespace

void sort_needs(std::vector<BlockNeed>* needs) {
  if (!std::is_sorted(needs->begin(), needs->end(), before))
    std::sort(needs->begin(), needs->end(), before);
}

ReadTask rounded_task(ReadTask task, const TaskRules& rules) {
  if (!rules.direct_offered || task.length < kDirectTaskBytes || !is_stored(task.file, rules))
    return task;
  const uint64_t end =
      end_in_units(task.offset + task.length, rules.alignment, rules.files[task.file].size_bytes);
  task.direct = true;
  task.offset = task.offset / rules.alignment * rules.alignment;
  task.length = end - task.offset;
  return task;
}

std::vector<ReadTask> make_read_tasks(std::vector<BlockNeed>* needs, const TaskRules& rules) {
  sort_needs(needs);
  std::vector<ReadTask> tasks;
  FileTasks files(rules, *needs, &tasks);
  for (size_t first = 0; first < needs->size();) {
    size_t last = first;
    while (last < needs->size() && (*needs)[last].file == (*needs)[first].file) ++last;
    files.add_file(first, last);
    first = last;
  }
  return tasks;
}

}  // namespace shardwright::exec::internal

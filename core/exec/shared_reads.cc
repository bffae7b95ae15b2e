// SPDX-License-Identifier: Apache-2.0
//
// Each worker takes what others have published, reads what the page cache has of this rank's own
// tasks into their slots, and waits when there is neither. One of them also keeps several reads of
// the device on their way: they land in staging memory, are checked there, and are copied into
// their slots when these are free. Shared memory is made of small pages, of which a request to a
// device takes fewer bytes, and is scarce.
#include "core/exec/shared_reads_internal.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "core/base/copy_bytes.h"
#include "core/base/without_exceptions.h"
#include "core/exec/parallel_internal.h"
#include "core/exec/read_depth_internal.h"
#include "core/storage/io_queue.h"

namespace shardwright::exec::internal {
namespace {

class SharedCall {
 public:
  SharedCall(const ReadSetting& setting, NodeGroup& group, std::vector<BlockNeed> needs,
             const std::vector<SharedRead>& reads)
      : setting_(setting), group_(group), io_(setting), needs_(std::move(needs)) {
    std::vector<ReadTask> tasks;
    for (const SharedRead& read : reads) {
      tasks.push_back(read.rounded);
      if (read.reads) {
        mine_.push_back({read});
      } else {
        theirs_.push_back(read);
      }
    }
    io_.expect(needs_, tasks);
    if (Progress* const progress = setting.call.progress; progress != nullptr) {
      for (const OwnRead& own : mine_) progress->bytes_total += own.read.exact.length;
      progress->items_total += needs_.size();
    }
  }

  Result<BlockReadTotals> run() {
    const auto threads = static_cast<size_t>(setting_.runtime.pool().thread_count());
    const size_t workers = std::max<size_t>(1, std::min(threads, theirs_.size() + mine_.size()));
    WorkQueue numbers(workers);
    SHW_RETURN_IF_ERROR(
        run_workers(setting_.runtime.pool(), workers, &numbers, [this](WorkQueue* queue) {
          size_t number = 0;
          if (!queue->next(&number)) return Status();
          // A rank that is out of memory has to say so before it waits for its other workers.
          Status mine = without_exceptions("reading with the ranks of this machine",
                                           [&] { return work(number == 0); });
          if (!mine.ok()) fail();
          return mine;
        }));
    return BlockReadTotals{io_.bytes_read(), io_.bytes_cached(), std::move(engine_)};
  }

 private:
  enum class Way { kUnknown, kAtOnce, kDirect };
  struct OwnRead {
    SharedRead read;
    Way way = Way::kUnknown;
  };
  // A read of the device of own tasks side by side, on its way or waiting for their slots.
  struct Staged {
    ReadTask span;     // rounded
    size_t first = 0;  // in mine_, those that are not published
    size_t last = 0;   // none: it is free
    StagingBuffer memory;
    bool has_come = false;
    bool is_checked = false;

    bool is_free() const { return first == last; }
    std::span<std::byte> bytes() const {
      return memory.bytes().first(static_cast<size_t>(span.length));
    }
    std::span<const std::byte> bytes_of(const ReadTask& exact) const {
      return bytes().subspan(static_cast<size_t>(exact.offset - span.offset),
                             static_cast<size_t>(exact.length));
    }
  };
  void fail() {
    failed_ = true;
    group_.stop();
  }

  // One worker; the reader is the one that asks the device.
  Status work(bool is_reader) {
    NodeGroup::Stillness still;
    while (!is_over(is_reader)) {
      SHW_RETURN_IF_ERROR(setting_.call.control.check("reading with the ranks of this machine"));
      const uint32_t seen = group_.seen();
      bool moved = false;
      if (is_reader) SHW_RETURN_IF_ERROR(move_staged(&moved));
      SHW_RETURN_IF_ERROR(read_one(&moved));
      SHW_RETURN_IF_ERROR(take_one(&moved));
      if (is_reader && !moved && in_flight_ > 0) {
        SHW_RETURN_IF_ERROR(finish_some());
      } else if (!moved) {
        SHW_RETURN_IF_ERROR(wait(seen, &still));
      }
    }
    return {};
  }

  bool is_over(bool is_reader) {
    if (failed_) return true;  // another worker says why
    if (is_reader && published_ < mine_.size()) return false;
    const MutexLock lock(mutex_);
    return next_taken_ == theirs_.size() && next_read_ == mine_.size();
  }

  Status wait(uint32_t seen, NodeGroup::Stillness* still) {
    int64_t next = -1;
    {
      const MutexLock lock(mutex_);
      if (next_taken_ < theirs_.size()) next = theirs_[next_taken_].number;
    }
    Status status = group_.wait(seen, still, next);
    return failed_ ? Status() : status;
  }

  // The next task of another reader, when it is there. Tasks are taken in their order.
  Status take_one(bool* moved) {
    const SharedRead* read = nullptr;
    {
      const MutexLock lock(mutex_);
      if (next_taken_ == theirs_.size() || !group_.is_ready(theirs_[next_taken_].number)) return {};
      read = &theirs_[next_taken_++];
    }
    *moved = true;
    SHW_RETURN_IF_ERROR(io_.hand_on(read->exact, slot_of(*read), false, /*checked=*/true));
    group_.release(read->number);
    io_.task_done(read->rounded);
    advance(*read, 0);
    return {};
  }

  // The next own task, when the page cache has it and its slot is free.
  Status read_one(bool* moved) {
    const SharedRead* read = nullptr;
    {
      const MutexLock lock(mutex_);
      if (next_way() != Way::kAtOnce || !group_.is_free(mine_[next_read_].read.number)) return {};
      read = &mine_[next_read_++].read;
    }
    *moved = true;
    return io_.explained(read->exact, read_at_once(*read));
  }

  // How the next own task is read; kUnknown when there is none. Tasks are begun in their order, so
  // that the least one never waits for a slot that it has itself to free.
  Way next_way() SHW_REQUIRES(mutex_) {
    if (next_read_ == mine_.size()) return Way::kUnknown;
    OwnRead& own = mine_[next_read_];
    if (own.way == Way::kUnknown) {
      const bool at_once = !own.read.rounded.direct || io_.is_cached(own.read.rounded);
      own.way = at_once ? Way::kAtOnce : Way::kDirect;
    }
    return own.way;
  }

  // Step by step, so that each block is checked while the processor has it.
  Status read_at_once(const SharedRead& read) {
    const bool cached = io_.is_cached(read.exact);
    for (ReadTask step = read.exact; step.first < read.exact.last; step.first = step.last) {
      io_.end_step(read.exact, &step);
      const auto memory = slot_of(read).subspan(
          static_cast<size_t>(step.offset - read.exact.offset), static_cast<size_t>(step.length));
      SHW_RETURN_IF_ERROR(io_.read(step, memory));
      SHW_RETURN_IF_ERROR(io_.hand_on(step, memory, false));
      if (cached) io_.count_cached(step.length);
    }
    publish(read);
    return {};
  }

  // Of the worker that asks the device: new reads go out, one that has come is checked, and what is
  // checked goes into free slots.
  Status move_staged(bool* moved) {
    while (in_flight_ < depth_.depth()) {
      Staged* const place = std::ranges::find_if(staged_, &Staged::is_free);
      if (place == staged_.end() || !next_direct(place)) break;
      *moved = true;
      SHW_RETURN_IF_ERROR(io_.explained(mine_[place->first].read.exact, submit(place)));
    }
    for (Staged& staged : staged_) {
      if (!staged.has_come || staged.is_checked || staged.is_free()) continue;
      SHW_RETURN_IF_ERROR(io_.hand_on(staged.span, staged.bytes(), false));
      staged.is_checked = true;
      *moved = true;
      break;
    }
    for (Staged& staged : staged_) {
      for (; staged.is_checked && !staged.is_free(); ++staged.first) {
        const SharedRead& read = mine_[staged.first].read;
        if (!group_.is_free(read.number)) break;
        copy_bytes(staged.bytes_of(read.exact), slot_of(read));
        publish(read);
        *moved = true;
      }
      if (staged.is_free()) staged.memory = StagingBuffer();
    }
    return {};
  }

  // The next own tasks of the device that lie side by side, with memory for them. It never waits
  // for memory, which ranks of one context share: who has some may wait for this rank. Without any
  // a task goes through the page cache into its slot.
  bool next_direct(Staged* place) {
    const MutexLock lock(mutex_);
    if (next_way() != Way::kDirect) return false;
    OwnRead& first = mine_[next_read_];
    ReadTask exact = first.read.exact;
    size_t end = next_read_ + 1;
    for (; end < mine_.size() && extends(exact, mine_[end]); ++end) {
      const ReadTask& more = mine_[end].read.exact;
      exact.length = more.offset + more.length - exact.offset;
      exact.last = more.last;
    }
    const ReadTask span = rounded_task(exact, io_.task_rules());
    auto memory = setting_.runtime.staging().try_acquire(staging_bytes_for(span.length));
    if (memory.ok() && *memory) {
      *place = {span, next_read_, end, std::move(*memory), false, false};
      next_read_ = end;
      return true;
    }
    if (std::ranges::all_of(staged_, &Staged::is_free)) first.way = Way::kAtOnce;
    return false;
  }

  // Of one size for whole runs, whatever rounding adds to them.
  uint64_t staging_bytes_for(uint64_t bytes) const {
    const uint64_t run = kSharedRunBytes + 2 * io_.task_rules().alignment;
    return bytes > kSharedRunBytes && bytes <= run
               ? run
               : std::max(std::bit_ceil(bytes), kMinStagingBytes);
  }

  bool extends(const ReadTask& span, const OwnRead& own) const {
    const ReadTask& exact = own.read.exact;
    const uint64_t end = span.offset + span.length;
    return exact.file == span.file && exact.offset >= end &&
           exact.offset - end <= io_.task_rules().alignment && own.read.rounded.direct &&
           exact.offset + exact.length - span.offset <= kSharedRunBytes;
  }

  Status submit(Staged* place) {
    SHW_ASSIGN_OR_RETURN(storage::StorageObject* const object, io_.object(place->span));
    if (queue_ == nullptr) {
      SHW_ASSIGN_OR_RETURN(queue_,
                           setting_.location.storage->open_queue(*object, kMostReadsInFlight));
      engine_ = queue_->engine();
    }
    const auto tag = static_cast<uint64_t>(place - staged_.data());
    queue_->submit(
        {storage::IoRequest::Operation::kRead, object, place->span.offset, place->bytes(), tag});
    ++in_flight_;
    return {};
  }

  Status finish_some() {
    done_.clear();
    {
      const Trace::Span span(setting_.trace, "read");
      queue_->complete(&done_);
    }
    for (storage::IoCompletion& ended : done_) {
      --in_flight_;
      Staged& staged = staged_[ended.tag];
      depth_.came(staged.span.length);
      SHW_RETURN_IF_ERROR(io_.explained(mine_[staged.first].read.exact,
                                        io_.completed(staged.span, std::move(ended.status))));
      staged.has_come = true;
    }
    return {};
  }

  // A task lies in its slot from its first byte on, however its reader has read it.
  std::span<std::byte> slot_of(const SharedRead& read) const {
    return group_.slot(read.number).first(static_cast<size_t>(read.exact.length));
  }

  void publish(const SharedRead& read) {
    group_.publish(read.number);
    io_.task_done(read.rounded);
    advance(read, read.exact.length);
    ++published_;
  }

  void advance(const SharedRead& read, uint64_t bytes_read) const {
    if (setting_.call.progress == nullptr) return;
    setting_.call.progress->advance(bytes_read, read.exact.last - read.exact.first);
  }

  const ReadSetting setting_;
  NodeGroup& group_;
  BlockIo io_;
  const std::vector<BlockNeed> needs_;
  std::vector<OwnRead> mine_;       // that this rank reads
  std::vector<SharedRead> theirs_;  // that others read
  std::atomic<bool> failed_{false};
  std::atomic<size_t> published_{0};
  Mutex mutex_;
  size_t next_taken_ SHW_GUARDED_BY(mutex_) = 0;
  size_t next_read_ SHW_GUARDED_BY(mutex_) = 0;
  // Of the worker that asks the device.
  ReadDepth depth_{1, kMostReadsInFlight};
  std::array<Staged, size_t{2} * kMostReadsInFlight> staged_;
  std::vector<storage::IoCompletion> done_;
  std::string engine_;
  size_t in_flight_ = 0;
  std::unique_ptr<storage::IoQueue> queue_;  // last: waits for what lands in staging memory
};

bool before(const BlockNeed& need, const SharedTask& task) {
  return need.file != task.file ? need.file < task.file : need.offset < task.offset;
}

bool inside(const BlockNeed& need, const SharedTask& task) {
  return need.file == task.file && need.offset >= task.offset &&
         need.offset + need.length <= task.offset + task.length;
}

}  // namespace

WantedList wanted_blocks(std::vector<BlockNeed>* needs) {
  sort_needs(needs);
  WantedList list{{}, {}};
  for (size_t n = 0; n < needs->size(); ++n) {
    const BlockNeed& need = (*needs)[n];
    const bool repeated = !list.blocks.empty() && list.blocks.back().file == need.file &&
                          list.blocks.back().offset == need.offset &&
                          list.blocks.back().length == need.length;
    if (repeated) continue;
    list.blocks.push_back({need.offset, need.file, need.length});
    list.begins.push_back(n);
  }
  list.begins.push_back(needs->size());
  return list;
}

Result<std::vector<SharedRead>> take_shared(const NodeGroup& group, const TaskRules& rules,
                                            std::vector<BlockNeed>* needs,
                                            std::vector<BlockNeed>* shared) {
  std::vector<SharedRead> reads;
  std::vector<BlockNeed> rest;
  size_t next = 0;
  for (uint32_t number = 0; number < group.tasks().size(); ++number) {
    const SharedTask& task = group.tasks()[number];
    if (!task.is_of(group.own_number()) || task.round != SharedBlock::kStored) continue;
    for (; next < needs->size() && before((*needs)[next], task); ++next)
      rest.push_back((*needs)[next]);
    SharedRead read;
    read.number = number;
    read.reads = task.reader == group.own_number();
    read.exact.file = task.file;
    read.exact.offset = task.offset;
    read.exact.length = task.length;
    read.exact.first = shared->size();
    for (; next < needs->size() && inside((*needs)[next], task); ++next)
      shared->push_back((*needs)[next]);
    read.exact.last = shared->size();
    if (read.exact.last == read.exact.first)
      return internal_error("a block that ranks share is not among those that this rank wants");
    const bool new_file = reads.empty() || reads.back().exact.file != task.file;
    read.exact.handle = reads.empty() ? 0 : reads.back().exact.handle + (new_file ? 1 : 0);
    read.rounded = rounded_task(read.exact, rules);
    reads.push_back(read);
  }
  for (; next < needs->size(); ++next) rest.push_back((*needs)[next]);
  *needs = std::move(rest);
  return reads;
}

Result<BlockReadTotals> read_shared(const ReadSetting& setting, NodeGroup& group,
                                    std::vector<BlockNeed> needs,
                                    const std::vector<SharedRead>& reads) {
  if (reads.empty()) return BlockReadTotals{};
  return SharedCall(setting, group, std::move(needs), reads).run();
}

}  // namespace shardwright::exec::internal

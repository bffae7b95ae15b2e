// SPDX-License-Identifier: Apache-2.0
//
// Steps 3 and 4 of reading: run the tasks on the workers, check blocks, hand them on. Each file is
// opened once per call and way of reading, and closed with its last task.
#include "core/exec/block_reader_internal.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "core/exec/block_io_internal.h"
#include "core/exec/parallel_internal.h"
#include "core/exec/read_depth_internal.h"
#include "core/exec/shared_reads_internal.h"
#include "core/integrity/digest.h"
#include "core/storage/io_queue.h"
#include "core/storage/storage.h"

namespace shardwright::exec::internal {
namespace {

// One call of BlockReader::run.
class ReadCall {
 public:
  explicit ReadCall(const ReadSetting& setting) : setting_(setting), io_(setting) {}

  Result<BlockReadTotals> run(std::vector<BlockNeed> needs) {
    needs_ = std::move(needs);
    const std::vector<ReadTask> tasks = make_read_tasks(&needs_, io_.task_rules());
    io_.expect(needs_, tasks);
    announce(tasks);
    ThreadPool& pool = setting_.runtime.pool();
    TaskGroup group(tasks.size() > 1 ? &pool : nullptr);
    WorkQueue work(tasks.size());
    if (tasks.size() > 1 && io_.reads_overlap() && std::ranges::any_of(tasks, &ReadTask::direct)) {
      const auto threads = static_cast<size_t>(pool.thread_count());
      for (size_t worker = 0; worker < std::min(threads, tasks.size()); ++worker)
        group.run([this, &tasks, &work] { return read_tasks(tasks, &work); });
    } else {
      for (const ReadTask& task : tasks) group.run([this, &task] { return run_task(task); });
    }
    SHW_RETURN_IF_ERROR(group.wait());
    const std::lock_guard lock(engine_mutex_);
    return BlockReadTotals{io_.bytes_read(), io_.bytes_cached(), std::move(engine_)};
  }

 private:
  // What will be read, whole blocks and cheap gaps included: what is done adds up to it.
  void announce(const std::vector<ReadTask>& tasks) {
    if (setting_.call.progress == nullptr) return;
    uint64_t bytes = 0;
    for (const ReadTask& task : tasks) bytes += task.length;
    setting_.call.progress->bytes_total += bytes;
    setting_.call.progress->items_total += needs_.size();
  }

  Status run_task(const ReadTask& task) {
    SHW_RETURN_IF_ERROR(setting_.call.control.check("read"));
    {
      const Trace::Span span(setting_.trace, "check index");
      SHW_RETURN_IF_ERROR(io_.prepare(task));
    }
    return settle(task, read_and_hand_on(task));
  }

  // What comes of a task that was read and handed on, or failed. Needs staging memory to repeat it.
  Status settle(const ReadTask& task, Status status) {
    status = io_.explained(task, std::move(status));
    if (!status.ok() && setting_.sink.survives_failures())
      status = block_by_block(task, std::move(status));
    io_.task_done(task);
    if (status.ok() && setting_.call.progress != nullptr)
      setting_.call.progress->advance(task.length, task.last - task.first);
    return status;
  }

  // A read that is not checked yet and the memory that it lands in.
  struct Slot {
    const ReadTask* task = nullptr;  // null = free
    StagingBuffer staging;
    std::span<std::byte> memory;
    bool landed = false;
  };
  struct Window {
    ReadDepth depth{kLeastReadsInFlight, kMostReadsInFlight};
    std::array<Slot, kMostReadsInFlight> slots;
    std::vector<std::pair<const ReadTask*, Status>> failed;  // to be settled when nothing is held
    std::vector<storage::IoCompletion> done;                 // some are still to be checked
    size_t next_done = 0;
    size_t in_flight = 0;                     // those that are still to be checked among them
    std::unique_ptr<storage::IoQueue> queue;  // last: waits for what lands in the slots
  };

  // One worker: several reads in flight, and what has come is checked meanwhile. It waits for
  // staging memory only while it holds none, so that workers never wait for each other.
  Status read_tasks(std::span<const ReadTask> tasks, WorkQueue* work) {
    Window window;
    window.done.reserve(kMostReadsInFlight);
    size_t number = 0;
    const ReadTask* next = work->next(&number) ? &tasks[number] : nullptr;
    Status status;
    while (status.ok() && (next != nullptr || window.in_flight > 0 || !window.failed.empty())) {
      bool started = next != nullptr && window.in_flight < window.depth.depth();
      if (started) status = start(*next, &window, &started);
      if (started) {
        next = status.ok() && work->next(&number) ? &tasks[number] : nullptr;
      } else if (window.in_flight > 0) {
        status = finish_one(&window);
      } else {
        status = settle(*window.failed.back().first, std::move(window.failed.back().second));
        window.failed.pop_back();
      }
    }
    if (!status.ok()) work->stop();
    return status;
  }

  // *started becomes false when there is no memory to be had without waiting.
  Status start(const ReadTask& task, Window* window, bool* started) {
    if (io_.is_derived(task) && window->in_flight > 0) {
      *started = false;  // no queue takes it, and it may need staging memory that others wait for
      return {};
    }
    if (window->in_flight == 0 && (!task.direct || !window->failed.empty())) {
      *started = window->failed.empty();
      return *started ? run_task(task) : Status();
    }
    SHW_RETURN_IF_ERROR(setting_.call.control.check("read"));
    SHW_RETURN_IF_ERROR(io_.prepare(task));
    if (io_.is_cached(task)) {
      // It needs memory of one block while it runs: what is in flight holds some.
      *started = window->in_flight == 0;
      return *started ? settle(task, read_cached(task)) : Status();
    }
    Slot& slot = *std::ranges::find(window->slots, nullptr, &Slot::task);
    slot.memory = io_.landing_of(task);
    slot.landed = !slot.memory.empty();
    if (!slot.landed) {
      const uint64_t size = std::max(std::bit_ceil(task.length), kMinStagingBytes);
      BufferPool& staging = setting_.runtime.staging();
      SHW_ASSIGN_OR_RETURN(slot.staging, window->in_flight == 0
                                             ? staging.acquire(size, setting_.call.control)
                                             : staging.try_acquire(size));
      *started = static_cast<bool>(slot.staging);
      if (!*started) return {};
      slot.memory = slot.staging.bytes().first(task.length);
    }
    return submit(task, &slot, window);
  }

  Status submit(const ReadTask& task, Slot* slot, Window* window) {
    const auto object = io_.object(task);
    if (!object.ok()) return lay_aside(task, object.status(), slot, window);
    if (window->queue == nullptr) {
      SHW_ASSIGN_OR_RETURN(window->queue,
                           setting_.location.storage->open_queue(**object, kMostReadsInFlight));
      const std::lock_guard lock(engine_mutex_);
      engine_ = window->queue->engine();
    }
    slot->task = &task;
    ++window->in_flight;
    const auto tag = static_cast<uint64_t>(slot - window->slots.data());
    window->queue->submit(
        {storage::IoRequest::Operation::kRead, *object, task.offset, slot->memory, tag});
    return {};
  }

  // One read that has ended is checked at a time, so that the next one is on its way before.
  Status finish_one(Window* window) {
    if (window->next_done == window->done.size()) {
      const Trace::Span span(setting_.trace, "read");
      window->done.clear();
      window->next_done = 0;
      window->queue->complete(&window->done);
    }
    storage::IoCompletion& ended = window->done[window->next_done++];
    Slot& slot = window->slots[ended.tag];
    const ReadTask& task = *slot.task;
    --window->in_flight;
    slot.task = nullptr;
    window->depth.came(task.length);
    Status status = io_.completed(task, std::move(ended.status));
    if (status.ok()) status = io_.hand_on(task, slot.memory, slot.landed);
    slot.memory = {};
    if (!status.ok()) return lay_aside(task, std::move(status), &slot, window);
    slot.staging = StagingBuffer();
    return settle(task, Status());
  }

  // A failure ends the call, or is looked at block by block when nothing is held.
  Status lay_aside(const ReadTask& task, Status status, Slot* slot, Window* window) {
    slot->staging = StagingBuffer();
    if (!setting_.sink.survives_failures()) return settle(task, std::move(status));
    window->failed.emplace_back(&task, std::move(status));
    return {};
  }

  // In steps of about a block, each into the memory where it is wanted or into that of one step.
  Status read_cached(const ReadTask& task) {
    const Trace::Span span(setting_.trace, "read cached");
    StagingBuffer staging;
    for (ReadTask step = task; step.first < task.last; step.first = step.last) {
      io_.end_step(task, &step);
      std::span<std::byte> memory = io_.landing_of(step);
      const bool landed = !memory.empty();
      if (!landed) {
        SHW_RETURN_IF_ERROR(reserve(step, &staging));
        memory = staging.bytes().first(step.length);
      }
      SHW_RETURN_IF_ERROR(io_.read(step, memory));
      SHW_RETURN_IF_ERROR(io_.hand_on(step, memory, landed));
      io_.count_cached(step.length);
    }
    return {};
  }

  // At least what the task has; waits for it.
  Status reserve(const ReadTask& task, StagingBuffer* staging) {
    if (*staging && staging->bytes().size() >= task.length) return {};
    *staging = StagingBuffer();
    const uint64_t size = std::max(std::bit_ceil(task.length), kMinStagingBytes);
    SHW_ASSIGN_OR_RETURN(*staging, setting_.runtime.staging().acquire(size, setting_.call.control));
    return {};
  }

  Status read_and_hand_on(const ReadTask& task) {
    if (io_.is_cached(task)) return read_cached(task);
    StagingBuffer staging;
    std::span<std::byte> memory = io_.landing_of(task);
    const bool landed = !memory.empty();
    if (!landed) {
      SHW_RETURN_IF_ERROR(reserve(task, &staging));
      memory = staging.bytes().first(task.length);
    }
    SHW_RETURN_IF_ERROR(io_.read(task, memory));
    return io_.hand_on(task, memory, landed);
  }

  // A task that could not be read as a whole: each block by itself, so that damage is named block
  // by block.
  Status block_by_block(const ReadTask& task, Status whole) {
    if (whole.code() != StatusCode::kDataLoss) return whole;
    if (task.last - task.first == 1)
      return setting_.sink.failed(needs_[task.first], std::move(whole));
    for (size_t i = task.first; i < task.last; ++i) {
      const BlockNeed& need = needs_[i];
      ReadTask single{task};
      single.direct = false;
      single.offset = need.offset;
      single.length = need.length;
      single.first = i;
      single.last = i + 1;
      Status status = read_and_hand_on(single);
      if (!status.ok()) status = setting_.sink.failed(need, std::move(status));
      SHW_RETURN_IF_ERROR(std::move(status));
    }
    return {};
  }

  const ReadSetting setting_;
  BlockIo io_;
  std::vector<BlockNeed> needs_;
  std::mutex engine_mutex_;
  std::string engine_;  // guarded by engine_mutex_
};

}  // namespace

void BlockReadTotals::add(const BlockReadTotals& more) {
  bytes_read += more.bytes_read;
  bytes_cached += more.bytes_cached;
  if (io_engine.empty()) io_engine = more.io_engine;
}

std::span<std::byte> BlockSink::destination(std::span<const BlockNeed>) {
  return {};
}

Status BlockSink::failed(const BlockNeed&, Status status) {
  return status;
}

Result<BlockReadTotals> BlockReader::run(std::vector<BlockNeed> needs, const ReadRules& rules,
                                         const CallContext& call, BlockSink& sink,
                                         NodeGroup* group) const {
  const ReadSetting setting{runtime_, location_, opened_, rules, call, sink, trace_};
  BlockReadTotals totals;
  if (group != nullptr) {
    std::vector<BlockNeed> shared;
    SHW_ASSIGN_OR_RETURN(const std::vector<SharedRead> reads,
                         take_shared(*group, task_rules_of(setting), &needs, &shared));
    SHW_ASSIGN_OR_RETURN(totals, read_shared(setting, *group, std::move(shared), reads));
  }
  if (needs.empty()) return totals;
  SHW_ASSIGN_OR_RETURN(BlockReadTotals own, ReadCall(setting).run(std::move(needs)));
  own.add(totals);
  return own;
}

namespace {

uint32_t file_of(const format::OpenedCheckpoint& opened, const format::StoredItem& item) {
  return item.kind == format::StoredItem::Kind::kObject ? opened.object_file(item.number)
                                                        : opened.chunk_file(item.number);
}

// Finds the places of items that opening did not find, file by file.
Status locate_items(Runtime& runtime, const format::OpenedCheckpoint& opened,
                    std::vector<format::StoredItem> items, const CallControl& control) {
  std::ranges::stable_sort(
      items, {}, [&opened](const format::StoredItem& item) { return file_of(opened, item); });
  const size_t calls = (items.size() + kLocatedTogether - 1) / kLocatedTogether;
  return run_each(runtime.pool(), calls, control, [&](size_t i) {
    const std::span<const format::StoredItem> all(items);
    const size_t first = i * kLocatedTogether;
    return opened.locate(all.subspan(first, std::min(kLocatedTogether, all.size() - first)));
  });
}

}  // namespace

Status prepare_items(Runtime& runtime, const format::OpenedCheckpoint& opened, size_t count,
                     const std::function<format::StoredItem(size_t)>& item_at,
                     const CallControl& control) {
  std::vector<uint32_t> files;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t file = file_of(opened, item_at(i));
    if (files.empty() || files.back() != file) files.push_back(file);
  }
  std::ranges::sort(files);
  const auto repeated = std::ranges::unique(files);
  files.erase(repeated.begin(), repeated.end());
  SHW_RETURN_IF_ERROR(run_each(runtime.pool(), files.size(), control,
                               [&](size_t i) { return opened.prepare_file(files[i]); }));
  if (!opened.locates()) return {};
  std::vector<format::StoredItem> items(count);
  for (size_t i = 0; i < count; ++i) items[i] = item_at(i);
  return locate_items(runtime, opened, std::move(items), control);
}

uint64_t block_bytes_of(const format::OpenedCheckpoint& opened) {
  const uint64_t bytes = opened.digest_block_bytes();
  return bytes > 0 ? bytes : kDigestBlockBytes;
}

Status append_whole_item(const format::OpenedCheckpoint& opened, format::StoredItem item,
                         uint32_t user, std::vector<BlockNeed>* needs) {
  const bool is_object = item.kind == format::StoredItem::Kind::kObject;
  SHW_ASSIGN_OR_RETURN(const format::Extent extent, is_object ? opened.object_extent(item.number)
                                                              : opened.chunk_extent(item.number));
  const uint64_t unit = block_bytes_of(opened);
  for (uint64_t begin = 0; begin < extent.size_bytes; begin += unit) {
    BlockNeed need{extent.offset + begin, item.number, begin, extent.file, 0, user};
    if (is_object) need.kind = NeedKind::kObject;
    need.length = static_cast<uint32_t>(std::min(unit, extent.size_bytes - begin));
    needs->push_back(need);
  }
  return {};
}

}  // namespace shardwright::exec::internal

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

#include "core/exec/parallel_internal.h"
#include "core/integrity/digest.h"
#include "core/storage/io_queue.h"
#include "core/storage/storage.h"

namespace shardwright::exec::internal {
namespace {

bool same_block(const BlockNeed& a, const BlockNeed& b) {
  return a.offset == b.offset && a.length == b.length && a.item == b.item && a.kind == b.kind;
}

// A short end of a file that the manifest names as longer is damage.
Status as_damage(Status status, const format::FileInfo& file, const ReadTask& task) {
  if (status.ok() || status.code() != StatusCode::kOutOfRange) return status;
  return data_loss(fmt::format("file {} ends inside the {} bytes at {}; it was cut", file.key,
                               task.length, task.offset))
      .with_detail("file", file.key)
      .with_detail("offset", std::to_string(task.offset))
      .with_detail("length", std::to_string(task.length));
}

// The open objects of one file during one call.
class FileHandles {
 public:
  void expect_task() { ++tasks_left_; }
  void task_done() {
    if (--tasks_left_ > 0) return;
    const std::lock_guard lock(mutex_);
    for (auto& object : objects_)
      object.reset();  // a read-only object has nothing to report on close
  }

  Result<storage::StorageObject*> get(const format::Location& location,
                                      const format::FileInfo& file, bool direct) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<storage::StorageObject>& object = objects_[direct ? 1 : 0];
    if (object == nullptr) {
      storage::OpenOptions options;
      options.direct = direct;
      SHW_ASSIGN_OR_RETURN(object,
                           location.storage->open(format::stored_key(location, file), options));
    }
    return object.get();
  }

  // Reads one at a time where the storage wants that.
  Status read(storage::StorageObject& object, bool concurrent, uint64_t offset,
              std::span<std::byte> data) {
    if (concurrent) return object.read_at(offset, data);
    const std::lock_guard lock(mutex_);
    return object.read_at(offset, data);
  }

 private:
  std::mutex mutex_;
  std::array<std::unique_ptr<storage::StorageObject>, 2> objects_;
  std::atomic<int64_t> tasks_left_{0};
};

// One call of BlockReader::run.
class ReadCall {
 public:
  ReadCall(Runtime& runtime, const format::Location& location,
           const format::OpenedCheckpoint& opened)
      : runtime_(runtime), location_(location), opened_(opened) {}

  void set(const ReadRules& rules, const CallContext& call, BlockSink& sink, Trace* trace) {
    trace_ = trace;
    path_ = rules.path;
    check_digests_ = rules.verify == VerifyRule::kOnRead && opened_.digest_block_bytes() > 0;
    call_ = &call;
    sink_ = &sink;
  }

  Result<BlockReadTotals> run(std::vector<BlockNeed> needs) {
    needs_ = std::move(needs);
    storage::Storage& store = *location_.storage;
    concurrent_ = storage::offers(store, storage::kConcurrentRead);
    TaskRules rules;
    const bool direct_offered = storage::offers(store, storage::kDirectIo);
    rules.direct_offered = direct_offered && path_ != ReadPath::kBuffered;
    asks_cache_ = direct_offered && path_ == ReadPath::kAuto;
    rules.alignment = std::max<uint64_t>(store.alignment(), 1);
    rules.files = opened_.files();
    alignment_ = rules.alignment;
    const std::vector<ReadTask> tasks = make_read_tasks(&needs_, rules);
    handles_ = std::vector<FileHandles>(tasks.back().handle + size_t{1});
    for (const ReadTask& task : tasks) handles_[task.handle].expect_task();
    announce(tasks);
    TaskGroup group(tasks.size() > 1 ? &runtime_.pool() : nullptr);
    WorkQueue work(tasks.size());
    if (tasks.size() > 1 && concurrent_ && std::ranges::any_of(tasks, &ReadTask::direct)) {
      const auto threads = static_cast<size_t>(runtime_.pool().thread_count());
      for (size_t worker = 0; worker < std::min(threads, tasks.size()); ++worker)
        group.run([this, &tasks, &work] { return read_tasks(tasks, &work); });
    } else {
      for (const ReadTask& task : tasks) group.run([this, &task] { return run_task(task); });
    }
    SHW_RETURN_IF_ERROR(group.wait());
    const std::lock_guard lock(engine_mutex_);
    return BlockReadTotals{bytes_read_.load(), bytes_cached_.load(), std::move(engine_)};
  }

 private:
  // What will be read, whole blocks and cheap gaps included: what is done adds up to it.
  void announce(const std::vector<ReadTask>& tasks) {
    if (call_->progress == nullptr) return;
    uint64_t bytes = 0;
    for (const ReadTask& task : tasks) bytes += task.length;
    call_->progress->bytes_total += bytes;
    call_->progress->items_total += needs_.size();
  }

  Status run_task(const ReadTask& task) {
    SHW_RETURN_IF_ERROR(call_->control.check("read"));
    const format::FileInfo& file = opened_.files()[task.file];
    {
      const Trace::Span span(trace_, "check index");
      SHW_RETURN_IF_ERROR(opened_.prepare_file(task.file));
    }
    return settle(task, read_and_hand_on(task, file));
  }

  // What comes of a task that was read and handed on, or failed. Needs staging memory to repeat it.
  Status settle(const ReadTask& task, Status status) {
    if (status.code() == StatusCode::kNotFound) status = opened_.explain_missing(task.file);
    if (!status.ok() && sink_->survives_failures())
      status = block_by_block(task, std::move(status));
    handles_[task.handle].task_done();
    if (status.ok() && call_->progress != nullptr)
      call_->progress->advance(task.length, task.last - task.first);
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
    std::array<Slot, kReadsInFlight> slots;
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
    window.done.reserve(kReadsInFlight);
    size_t number = 0;
    const ReadTask* next = work->next(&number) ? &tasks[number] : nullptr;
    Status status;
    while (status.ok() && (next != nullptr || window.in_flight > 0 || !window.failed.empty())) {
      bool started = next != nullptr && window.in_flight < kReadsInFlight;
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
    if (window->in_flight == 0 && (!task.direct || !window->failed.empty())) {
      *started = window->failed.empty();
      return *started ? run_task(task) : Status();
    }
    SHW_RETURN_IF_ERROR(call_->control.check("read"));
    SHW_RETURN_IF_ERROR(opened_.prepare_file(task.file));
    if (is_cached(task)) {
      // It needs memory of one block while it runs: what is in flight holds some.
      *started = window->in_flight == 0;
      return *started ? settle(task, read_cached(task)) : Status();
    }
    Slot& slot = *std::ranges::find(window->slots, nullptr, &Slot::task);
    slot.memory = landing_of(task);
    slot.landed = !slot.memory.empty();
    if (!slot.landed) {
      const uint64_t size = std::max(std::bit_ceil(task.length), kMinStagingBytes);
      BufferPool& staging = runtime_.staging();
      SHW_ASSIGN_OR_RETURN(slot.staging, window->in_flight == 0
                                             ? staging.acquire(size, call_->control)
                                             : staging.try_acquire(size));
      *started = static_cast<bool>(slot.staging);
      if (!*started) return {};
      slot.memory = slot.staging.bytes().first(task.length);
    }
    return submit(task, &slot, window);
  }

  Status submit(const ReadTask& task, Slot* slot, Window* window) {
    const auto object =
        handles_[task.handle].get(location_, opened_.files()[task.file], task.direct);
    if (!object.ok()) return lay_aside(task, object.status(), slot, window);
    if (window->queue == nullptr) {
      SHW_ASSIGN_OR_RETURN(window->queue, location_.storage->open_queue(**object, kReadsInFlight));
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
      const Trace::Span span(trace_, "read");
      window->done.clear();
      window->next_done = 0;
      window->queue->complete(&window->done);
    }
    storage::IoCompletion& ended = window->done[window->next_done++];
    Slot& slot = window->slots[ended.tag];
    const ReadTask& task = *slot.task;
    --window->in_flight;
    slot.task = nullptr;
    Status status = as_damage(std::move(ended.status), opened_.files()[task.file], task);
    if (status.ok()) {
      bytes_read_ += task.length;
      status = hand_on_all(task, slot.memory, slot.landed);
    }
    slot.memory = {};
    if (!status.ok()) return lay_aside(task, std::move(status), &slot, window);
    slot.staging = StagingBuffer();
    return settle(task, Status());
  }

  // A failure ends the call, or is looked at block by block when nothing is held.
  Status lay_aside(const ReadTask& task, Status status, Slot* slot, Window* window) {
    slot->staging = StagingBuffer();
    if (!sink_->survives_failures()) return settle(task, std::move(status));
    window->failed.emplace_back(&task, std::move(status));
    return {};
  }

  std::span<const BlockNeed> needs_of(const ReadTask& task) const {
    return std::span(needs_).subspan(task.first, task.last - task.first);
  }

  // Memory for a task: the sink's own when the bytes may land there, else staging.
  std::span<std::byte> landing_of(const ReadTask& task) const {
    const std::span<std::byte> memory = sink_->destination(needs_of(task));
    if (memory.size() != task.length) return {};
    const bool aligned = reinterpret_cast<uintptr_t>(memory.data()) % alignment_ == 0 &&
                         task.offset % alignment_ == 0 && task.length % alignment_ == 0;
    return task.direct && !aligned ? std::span<std::byte>() : memory;
  }

  // Whether nearly all of a task is to be had without the device. What cannot be asked is not.
  bool is_cached(const ReadTask& task) {
    if (!asks_cache_) return false;
    const auto object = handles_[task.handle].get(location_, opened_.files()[task.file], false);
    if (!object.ok()) return false;  // the read fails, too, and says why
    return (*object)->cached_bytes(task.offset, task.length) * 10 >= task.length * kCachedTenths;
  }

  // In steps of about a block, each into the memory where it is wanted or into that of one step.
  Status read_cached(const ReadTask& task) {
    const Trace::Span span(trace_, "read cached");
    StagingBuffer staging;
    for (ReadTask step = task; step.first < task.last; step.first = step.last) {
      end_step(task, &step);
      std::span<std::byte> memory = landing_of(step);
      const bool landed = !memory.empty();
      if (!landed) {
        SHW_RETURN_IF_ERROR(reserve(step, &staging));
        memory = staging.bytes().first(step.length);
      }
      SHW_RETURN_IF_ERROR(read_bytes(step, opened_.files()[task.file], memory));
      SHW_RETURN_IF_ERROR(hand_on_all(step, memory, landed));
      bytes_cached_ += step.length;
    }
    return {};
  }

  // As many needs of the task from the step's first on as end within one block of it.
  void end_step(const ReadTask& task, ReadTask* step) const {
    step->direct = false;
    step->offset = needs_[step->first].offset;
    step->length = 0;
    for (step->last = step->first; step->last < task.last; ++step->last) {
      const BlockNeed& need = needs_[step->last];
      const uint64_t length = std::max(step->length, need.offset + need.length - step->offset);
      if (step->last > step->first && length > kDigestBlockBytes) break;
      step->length = length;
    }
  }

  // At least what the task has; waits for it.
  Status reserve(const ReadTask& task, StagingBuffer* staging) {
    if (*staging && staging->bytes().size() >= task.length) return {};
    *staging = StagingBuffer();
    const uint64_t size = std::max(std::bit_ceil(task.length), kMinStagingBytes);
    SHW_ASSIGN_OR_RETURN(*staging, runtime_.staging().acquire(size, call_->control));
    return {};
  }

  Status read_and_hand_on(const ReadTask& task, const format::FileInfo& file) {
    if (is_cached(task)) return read_cached(task);
    StagingBuffer staging;
    std::span<std::byte> memory = landing_of(task);
    const bool landed = !memory.empty();
    if (!landed) {
      SHW_RETURN_IF_ERROR(reserve(task, &staging));
      memory = staging.bytes().first(task.length);
    }
    SHW_RETURN_IF_ERROR(read_bytes(task, file, memory));
    return hand_on_all(task, memory, landed);
  }

  Status hand_on_all(const ReadTask& task, std::span<const std::byte> memory, bool landed) {
    const Trace::Span span(trace_, "check and copy");
    const std::span<const BlockNeed> needs = needs_of(task);
    for (size_t first = 0; first < needs.size();) {
      size_t last = first + 1;
      while (last < needs.size() && same_block(needs[first], needs[last])) ++last;
      const auto bytes = memory.subspan(needs[first].offset - task.offset, needs[first].length);
      SHW_RETURN_IF_ERROR(hand_on(needs.subspan(first, last - first), bytes, landed));
      first = last;
    }
    return {};
  }

  Status read_bytes(const ReadTask& task, const format::FileInfo& file,
                    std::span<std::byte> memory) {
    const Trace::Span span(trace_, "read");
    FileHandles& handles = handles_[task.handle];
    SHW_ASSIGN_OR_RETURN(storage::StorageObject* const object,
                         handles.get(location_, file, task.direct));
    SHW_RETURN_IF_ERROR(
        as_damage(handles.read(*object, concurrent_, task.offset, memory), file, task));
    bytes_read_ += task.length;
    return {};
  }

  Status hand_on(std::span<const BlockNeed> needs, std::span<const std::byte> bytes, bool landed) {
    const BlockNeed& need = needs.front();
    Status status;
    if (check_digests_ && need.kind == NeedKind::kChunk) {
      status = opened_.check_chunk_block(need.item, need.begin / block_bytes_of(opened_), bytes);
    } else if (check_digests_ && need.kind == NeedKind::kObject) {
      status = opened_.check_object_block(need.item, need.begin / block_bytes_of(opened_), bytes);
    }
    if (status.ok()) return sink_->consume(needs, bytes, landed);
    return sink_->failed(need, std::move(status));
  }

  // A task that could not be read as a whole: each block by itself, so that damage is named block
  // by block.
  Status block_by_block(const ReadTask& task, Status whole) {
    if (whole.code() != StatusCode::kDataLoss) return whole;
    if (task.last - task.first == 1) return sink_->failed(needs_[task.first], std::move(whole));
    for (size_t i = task.first; i < task.last; ++i) {
      const BlockNeed& need = needs_[i];
      ReadTask single{task};
      single.direct = false;
      single.offset = need.offset;
      single.length = need.length;
      single.first = i;
      single.last = i + 1;
      Status status = read_and_hand_on(single, opened_.files()[task.file]);
      if (!status.ok()) status = sink_->failed(need, std::move(status));
      SHW_RETURN_IF_ERROR(std::move(status));
    }
    return {};
  }

  Runtime& runtime_;
  const format::Location& location_;
  const format::OpenedCheckpoint& opened_;
  const CallContext* call_ = nullptr;
  BlockSink* sink_ = nullptr;
  Trace* trace_ = nullptr;
  ReadPath path_ = ReadPath::kAuto;
  bool check_digests_ = true;
  bool concurrent_ = false;
  bool asks_cache_ = false;
  uint64_t alignment_ = 1;
  std::vector<BlockNeed> needs_;
  std::vector<FileHandles> handles_;
  std::atomic<uint64_t> bytes_read_{0};
  std::atomic<uint64_t> bytes_cached_{0};
  std::mutex engine_mutex_;
  std::string engine_;  // guarded by engine_mutex_
};

}  // namespace

std::span<std::byte> BlockSink::destination(std::span<const BlockNeed>) {
  return {};
}

Status BlockSink::failed(const BlockNeed&, Status status) {
  return status;
}

Result<BlockReadTotals> BlockReader::run(std::vector<BlockNeed> needs, const ReadRules& rules,
                                         const CallContext& call, BlockSink& sink) const {
  if (needs.empty()) return BlockReadTotals{};
  ReadCall read(runtime_, location_, opened_);
  read.set(rules, call, sink, trace_);
  return read.run(std::move(needs));
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

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
  Status read(storage::StorageObject& object, bool positional, uint64_t offset,
              std::span<std::byte> data) {
    if (positional) return object.read_at(offset, data);
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

  void set(VerifyRule verify, const CallContext& call, BlockSink& sink, Trace* trace) {
    trace_ = trace;
    check_digests_ = verify == VerifyRule::kOnRead && opened_.digest_block_bytes() > 0;
    call_ = &call;
    sink_ = &sink;
  }

  Result<BlockReadTotals> run(std::vector<BlockNeed> needs) {
    needs_ = std::move(needs);
    storage::Storage& store = *location_.storage;
    positional_ = (store.capabilities() & storage::kPositionalWrite) != 0;
    TaskRules rules;
    rules.direct_offered = (store.capabilities() & storage::kDirectIo) != 0;
    rules.alignment = std::max<uint64_t>(store.alignment(), 1);
    rules.files = opened_.files();
    alignment_ = rules.alignment;
    const std::vector<ReadTask> tasks = make_read_tasks(&needs_, rules);
    handles_ = std::vector<FileHandles>(tasks.back().handle + size_t{1});
    for (const ReadTask& task : tasks) handles_[task.handle].expect_task();
    TaskGroup group(tasks.size() > 1 ? &runtime_.pool() : nullptr);
    for (const ReadTask& task : tasks) {
      group.run([this, &task] { return run_task(task); });
    }
    SHW_RETURN_IF_ERROR(group.wait());
    return BlockReadTotals{bytes_read_.load()};
  }

 private:
  Status run_task(const ReadTask& task) {
    SHW_RETURN_IF_ERROR(call_->control.check("read"));
    const format::FileInfo& file = opened_.files()[task.file];
    {
      const Trace::Span span(trace_, "check index");
      SHW_RETURN_IF_ERROR(opened_.prepare_file(task.file));
    }
    Status status = read_and_hand_on(task, file);
    if (status.code() == StatusCode::kNotFound) status = opened_.explain_missing(task.file);
    if (!status.ok() && sink_->survives_failures())
      status = block_by_block(task, std::move(status));
    handles_[task.handle].task_done();
    if (status.ok() && call_->progress != nullptr) {
      call_->progress->bytes_done += task.length;
      call_->progress->items_done += task.last - task.first;
    }
    return status;
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

  Status read_and_hand_on(const ReadTask& task, const format::FileInfo& file) {
    StagingBuffer staging;
    std::span<std::byte> memory = landing_of(task);
    const bool landed = !memory.empty();
    if (!landed) {
      const uint64_t size = std::max(std::bit_ceil(task.length), kMinStagingBytes);
      SHW_ASSIGN_OR_RETURN(staging, runtime_.staging().acquire(size, call_->control));
      memory = staging.bytes().first(task.length);
    }
    SHW_RETURN_IF_ERROR(read_bytes(task, file, memory));
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
        as_damage(handles.read(*object, positional_, task.offset, memory), file, task));
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
  bool check_digests_ = true;
  bool positional_ = false;
  uint64_t alignment_ = 1;
  std::vector<BlockNeed> needs_;
  std::vector<FileHandles> handles_;
  std::atomic<uint64_t> bytes_read_{0};
};

}  // namespace

std::span<std::byte> BlockSink::destination(std::span<const BlockNeed>) {
  return {};
}

Status BlockSink::failed(const BlockNeed&, Status status) {
  return status;
}

Result<BlockReadTotals> BlockReader::run(std::vector<BlockNeed> needs, VerifyRule verify,
                                         const CallContext& call, BlockSink& sink) const {
  if (needs.empty()) return BlockReadTotals{};
  ReadCall read(runtime_, location_, opened_);
  read.set(verify, call, sink, trace_);
  return read.run(std::move(needs));
}

Status prepare_files(Runtime& runtime, const format::OpenedCheckpoint& opened,
                     std::vector<uint32_t> files, const CallControl& control) {
  std::ranges::sort(files);
  const auto repeated = std::ranges::unique(files);
  files.erase(repeated.begin(), repeated.end());
  return run_each(runtime.pool(), files.size(), control,
                  [&](size_t i) { return opened.prepare_file(files[i]); });
}

uint64_t block_bytes_of(const format::OpenedCheckpoint& opened) {
  const uint64_t bytes = opened.digest_block_bytes();
  return bytes > 0 ? bytes : kDigestBlockBytes;
}

Status append_whole_item(const format::OpenedCheckpoint& opened, NeedKind kind, uint64_t item,
                         uint32_t user, std::vector<BlockNeed>* needs) {
  SHW_ASSIGN_OR_RETURN(const format::Extent extent, kind == NeedKind::kObject
                                                        ? opened.object_extent(item)
                                                        : opened.chunk_extent(item));
  const uint64_t unit = block_bytes_of(opened);
  for (uint64_t begin = 0; begin < extent.size_bytes; begin += unit) {
    BlockNeed need{extent.offset + begin, item, begin, extent.file, 0, user, kind};
    need.length = static_cast<uint32_t>(std::min(unit, extent.size_bytes - begin));
    needs->push_back(need);
  }
  return {};
}

}  // namespace shardwright::exec::internal

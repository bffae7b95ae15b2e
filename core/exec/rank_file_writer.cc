// SPDX-License-Identifier: Apache-2.0
//
// The files of one rank:
//   2a  an own file is created exclusively in what the coordinator made; a file that ranks share is
//       opened
//   2b  extents, in tasks that several workers fill and write at their own positions (one worker in
//       ascending order where the storage cannot write at positions, gathered to parts where it
//       wants parts; and where all of a file is hashed, by the worker while the bytes are hot)
//   3a  what the format puts behind them
//   3b  sync, close (its errors count), sync of the prefix: then bytes and names are durable
// A sync or close that failed is never tried again: the file is removed and the generation is dead.
#include "core/exec/rank_file_writer_internal.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "core/base/copy_bytes.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/base/without_exceptions.h"
#include "core/exec/block_filler_internal.h"
#include "core/exec/parallel_internal.h"
#include "core/exec/part_writer_internal.h"
#include "core/exec/scatter_writer_internal.h"
#include "core/exec/write_tasks_internal.h"
#include "core/exec/write_window_internal.h"
#include "core/integrity/digest.h"
#include "core/storage/storage.h"

namespace shardwright::exec::internal {
namespace {

constexpr uint64_t kDirectFileBytes = uint64_t{1} << 20;  // below, the page cache is faster

class RankFilesWriter {
 public:
  RankFilesWriter(const RankFilesInput& input, std::vector<format::FileLayout> layouts)
      : input_(input),
        list_(input.contents.list),
        storage_(*input.location.storage),
        positional_(storage::offers(storage_, storage::kPositionalWrite)),
        direct_(storage::offers(storage_, storage::kDirectIo) &&
                kExtentAlignmentBytes % storage_.alignment() == 0),
        durable_(input.options.durability == Durability::kFull),
        in_order_(format::is_written_in_order(storage_, input.contents)),
        filler_(input.runtime.devices(), input.contents, input.bytes) {
    for (format::FileLayout& layout : layouts) files_.emplace_back().layout = std::move(layout);
    if (input.contents.hashes_file) hash_.emplace(integrity::TensorDigestAlgorithm::kSha256);
  }

  Result<plan::WriteResult> run() {
    Status status = without_exceptions("writing", [this] { return write_everything(); });
    if (status.ok()) return std::move(result_);
    remove_files();
    return status;
  }

 private:
  struct File {
    format::FileLayout layout;
    std::vector<WriteTask> tasks;
    uint64_t end = 0;  // of the last of them
    std::unique_ptr<storage::StorageObject> object;
    std::optional<PartWriter> parts;  // of object
    bool made = false;
    bool is_direct = false;  // all transfers at multiples of the alignment, the length at the end
  };
  struct Task {
    uint32_t file = 0;
    WriteTask range;
  };

  Status write_everything() {
    result_.rank = list_.rank;
    result_.generation = list_.generation;
    result_.plan_digest = list_.plan_digest;
    result_.payload_bytes = list_.payload_bytes();
    cut_tasks();
    if (Progress* progress = input_.call.progress; progress != nullptr) {
      uint64_t bytes = 0;
      for (const Task& task : tasks_) bytes += shown_bytes(files_[task.file].layout, task.range);
      progress->bytes_total = bytes;
    }
    SHW_RETURN_IF_ERROR(step("create", [this](File& file) { return open(&file); }));
    current_ = files_.data();
    SHW_RETURN_IF_ERROR(named_step("write", [this] { return write_extents(); }));
    if (input_.call.on_staged) input_.call.on_staged();
    SHW_RETURN_IF_ERROR(step("index", [this](File& file) { return write_tail(file); }));
    const Clock& clock = input_.runtime.clock();
    const int64_t begin_ns = clock.monotonic_ns();
    SHW_RETURN_IF_ERROR(step("sync", [this](File& file) { return sync_and_close(file); }));
    SHW_RETURN_IF_ERROR(named_step("sync_prefix", [this] { return sync_names(); }));
    if (input_.sync_ns != nullptr) *input_.sync_ns = clock.monotonic_ns() - begin_ns;
    return {};
  }

  // Those of what lies around large items come last.
  void cut_tasks() {
    CuttingRules rules{.capacity_bytes = kWriteBlockBytes, .in_order = in_order_};
    rules.in_blocks = input_.bytes != nullptr && input_.bytes->comes_in_blocks();
    for (uint32_t f = 0; f < files_.size(); ++f) {
      File& file = files_[f];
      file.tasks = make_write_tasks(file.layout, rules);
      if (!file.layout.wrappings.empty()) filler_.keep_checksums();
      for (const WriteTask& range : file.tasks) {
        tasks_.push_back({f, range});
        file.end = std::max(file.end, range.end);
        block_bytes_ = std::max(block_bytes_, lead_of(range) + range.end - range.begin);
      }
    }
    const auto around = std::ranges::stable_partition(
        tasks_, [](const Task& task) { return task.range.part != WriteTask::Part::kAround; });
    first_around_ = tasks_.size() - around.size();
  }

  // One step on all files.
  template <typename Work>
  Status step(std::string_view phase, const Work& work) {
    return named_step(phase, [&] {
      for (File& file : files_) {
        current_ = &file;
        SHW_RETURN_IF_ERROR(work(file));
      }
      return Status();
    });
  }

  // Deadline and cancellation before it, its name on a failure.
  template <typename Work>
  Status named_step(std::string_view phase, const Work& work) {
    Status status = input_.call.control.check(phase);
    if (status.ok()) {
      const Trace::Span span(input_.trace, phase);
      status = work();
    }
    return status.ok() ? status : named(phase, std::move(status));
  }

  Status named(std::string_view phase, Status status) const {
    const std::string& key = current_ == nullptr ? files_.front().layout.key : current_->layout.key;
    const bool has_file = !status.detail("file").empty();
    status = std::move(status)
                 .annotated(
                     fmt::format("rank {} could not write {} (step '{}')", list_.rank, key, phase))
                 .with_detail("phase", phase)
                 .with_detail("rank", fmt::to_string(list_.rank));
    return has_file ? status : std::move(status).with_detail("file", key);
  }

  // Step 2a.
  Status open(File* file) {
    const format::FileLayout& layout = file->layout;
    storage::OpenOptions options;
    options.mode = !layout.is_own ? storage::OpenMode::kUpdate
                   : positional_  ? storage::OpenMode::kCreateVisible
                                  : storage::OpenMode::kCreate;
    options.file_mode = input_.options.file_mode;
    options.durable = durable_;
    options.direct = direct_ && layout.data_bytes >= kDirectFileBytes;
    if (layout.is_own) options.expected_bytes = file->end + layout.tail_bytes;
    if (layout.is_own && input_.made != nullptr) input_.made->push_back(layout.key);
    if (layout.is_own && input_.replaces) SHW_RETURN_IF_ERROR(storage_.remove(layout.key));
    SHW_ASSIGN_OR_RETURN(file->object, storage_.open(layout.key, options));
    file->made = layout.is_own;
    file->is_direct = options.direct && layout.is_own;
    batched_ = batched_ || (options.direct && positional_);
    if (positional_ || !storage::offers(storage_, storage::kMultipart)) return {};
    file->parts.emplace(*file->object, storage_.part_bytes());
    return file->parts->acquire(input_.runtime.staging(), input_.call.control);
  }

  // Step 2b.
  Status write_extents() {
    if (files_.front().parts.has_value()) {
      for (File& file : files_) SHW_RETURN_IF_ERROR(write_parts(file));
      return {};
    }
    SHW_RETURN_IF_ERROR(write_some({tasks_.data(), first_around_}));
    return write_some(std::span<const Task>(tasks_).subspan(first_around_));
  }

  Status write_some(std::span<const Task> tasks) {
    WorkQueue queue(tasks.size());
    const auto threads = static_cast<size_t>(input_.runtime.pool().thread_count());
    const size_t workers = in_order_ ? 1 : std::min(tasks.size(), threads + 1);
    if (tasks.empty()) return {};
    return run_workers(input_.runtime.pool(), workers, &queue, [this, tasks](WorkQueue* shared) {
      return batched_ ? write_batches(tasks, shared) : write_tasks(tasks, shared);
    });
  }

  // One worker: one staging block, filled and written again and again.
  Status write_tasks(std::span<const Task> tasks, WorkQueue* queue) {
    size_t number = 0;
    if (!queue->next(&number)) return {};
    SHW_ASSIGN_OR_RETURN(const StagingBuffer block,
                         input_.runtime.staging().acquire(block_bytes_, input_.call.control));
    do {
      SHW_RETURN_IF_ERROR(input_.call.control.check("writing extents"));
      File& file = files_[tasks[number].file];
      SHW_RETURN_IF_ERROR(with_file(write_task(file, tasks[number].range, block.bytes()), file));
    } while (queue->next(&number));
    return {};
  }

  // One worker: fills a block while others are written.
  Status write_batches(std::span<const Task> tasks, WorkQueue* queue) {
    size_t number = 0;
    if (!queue->next(&number)) return {};
    WriteWindow window(input_.runtime.staging(), input_.call.control, block_bytes_,
                       [this, tasks](uint64_t ended, Status status) {
                         const Task& task = tasks[ended];
                         if (status.ok()) count_progress(files_[task.file].layout, task.range);
                         return with_file(std::move(status), files_[task.file]);
                       });
    SHW_RETURN_IF_ERROR(window.open(storage_, *files_.front().object));
    if (input_.io_engine != nullptr) {
      const std::lock_guard lock(engine_mutex_);
      *input_.io_engine = window.engine();
    }
    do {
      SHW_RETURN_IF_ERROR(input_.call.control.check("writing extents"));
      File& file = files_[tasks[number].file];
      const WriteTask& task = tasks[number].range;
      SHW_ASSIGN_OR_RETURN(const std::span<std::byte> block, window.block());
      if (task.is_scattered) {
        SHW_RETURN_IF_ERROR(with_file(write_task(file, task, block), file));
        continue;
      }
      const auto bytes = bytes_of(task, block);
      SHW_RETURN_IF_ERROR(fill(file, task, bytes));
      const Trace::Span span(input_.trace, "write block");
      window.write(*file.object, task.begin, bytes, number);
    } while (queue->next(&number));
    const Trace::Span span(input_.trace, "write block");
    return window.finish();
  }

  static Status with_file(Status status, const File& file) {
    if (status.ok() || !status.detail("file").empty()) return status;
    return std::move(status).with_detail("file", file.layout.key);
  }

  // In the block bytes stand as they do in the file, for direct transfers.
  static uint64_t lead_of(const WriteTask& task) { return task.begin % kExtentAlignmentBytes; }
  static std::span<std::byte> bytes_of(const WriteTask& task, std::span<std::byte> block) {
    return block.subspan(static_cast<size_t>(lead_of(task)),
                         static_cast<size_t>(task.end - task.begin));
  }

  Status write_parts(File& file) {
    for (const WriteTask& task : file.tasks) {
      SHW_RETURN_IF_ERROR(input_.call.control.check("writing extents"));
      const uint64_t size_bytes = task.end - task.begin;
      SHW_RETURN_IF_ERROR(fill(file, task, file.parts->room(size_bytes)));
      SHW_RETURN_IF_ERROR(file.parts->filled(size_bytes));
      count_progress(file.layout, task);
    }
    return {};
  }

  Status write_task(File& file, const WriteTask& task, std::span<std::byte> block) {
    const auto bytes = bytes_of(task, block);
    SHW_RETURN_IF_ERROR(fill(file, task, bytes));
    const Trace::Span span(input_.trace, "write block");
    if (task.is_scattered) {
      SHW_RETURN_IF_ERROR(write_scattered(*file.object, file.layout, task, bytes));
    } else {
      SHW_RETURN_IF_ERROR(file.object->write_at(task.begin, bytes));
    }
    count_progress(file.layout, task);
    return {};
  }

  Status fill(const File& file, const WriteTask& task, std::span<std::byte> bytes) {
    const Trace::Span span(input_.trace, "fill");
    SHW_RETURN_IF_ERROR(filler_.fill(file.layout, task, bytes));
    if (hash_.has_value()) hash_->update(bytes);
    return {};
  }

  void count_progress(const format::FileLayout& layout, const WriteTask& task) const {
    if (Progress* progress = input_.call.progress; progress != nullptr)
      progress->advance(shown_bytes(layout, task), 0);
  }

  // Of the bytes of a task those that progress counts: no head, no rounding up.
  static uint64_t shown_bytes(const format::FileLayout& layout, const WriteTask& task) {
    if (!layout.is_own) return task.end - task.begin;
    const uint64_t end = std::min(task.end, layout.data_bytes);
    return end - std::min(end, std::max<uint64_t>(task.begin, layout.head.size()));
  }

  // Step 3a.
  Status write_tail(File& file) {
    if (!file.layout.is_own) return {};
    const uint64_t position = file.end;
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> tail,
                         input_.format.encode_tail(input_.contents, file.layout, position,
                                                   filler_.digests(), &result_));
    if (hash_.has_value()) {
      hash_->update(tail);
      result_.file_sha256 = hash_->finish();
    }
    return write_blocks(file, position, tail);
  }

  // Through staging memory, for direct transfers: they end at a multiple of the alignment, and the
  // length is set behind them.
  Status write_blocks(File& file, uint64_t position, std::span<const std::byte> bytes) {
    if (file.parts.has_value()) {
      SHW_RETURN_IF_ERROR(file.parts->append(bytes));
      return file.parts->finish();
    }
    const auto block_bytes =
        std::min<uint64_t>(bytes.size() + kExtentAlignmentBytes, kWriteBlockBytes);
    SHW_ASSIGN_OR_RETURN(const StagingBuffer block,
                         input_.runtime.staging().acquire(block_bytes, input_.call.control));
    const uint64_t step = block_bytes / kExtentAlignmentBytes * kExtentAlignmentBytes;
    for (uint64_t begin = 0; begin < bytes.size(); begin += step) {
      const auto part = bytes.subspan(static_cast<size_t>(begin),
                                      static_cast<size_t>(std::min(step, bytes.size() - begin)));
      std::memcpy(block.bytes().data(), part.data(), part.size());
      size_t size_bytes = part.size();
      if (file.is_direct && size_bytes % kExtentAlignmentBytes != 0) {
        size_bytes += kExtentAlignmentBytes - size_bytes % kExtentAlignmentBytes;
        zero_bytes(block.bytes().subspan(part.size(), size_bytes - part.size()));
      }
      SHW_RETURN_IF_ERROR(file.object->write_at(position + begin, block.bytes().first(size_bytes)));
    }
    return file.is_direct ? file.object->truncate(position + bytes.size()) : Status();
  }

  // Step 3b.
  Status sync_and_close(File& file) {
    file.parts.reset();
    if (file.layout.is_own && !positional_) {
      const bool conditional = storage::offers(storage_, storage::kConditionalCommit);
      SHW_RETURN_IF_ERROR(file.object->commit(
          conditional ? storage::CommitCondition::kIfAbsent : storage::CommitCondition::kNone, {}));
      return file.object->close();
    }
    if (durable_) SHW_RETURN_IF_ERROR(file.object->sync());
    return file.object->close();
  }

  Status sync_names() {
    result_.directory_sync_supported = true;
    if (!durable_) return {};
    std::set<std::string_view> prefixes;
    for (const File& file : files_) {
      if (!file.layout.names_prefix.empty()) prefixes.insert(file.layout.names_prefix);
    }
    for (const std::string_view prefix : prefixes)
      SHW_RETURN_IF_ERROR(storage_.sync_prefix(prefix, &result_.directory_sync_supported));
    return {};
  }

  // Best effort: the failure that led here is what counts, and what stays is found by gc.
  void remove_files() noexcept {
    for (File& file : files_) {
      static_cast<void>(without_exceptions("removing a file", [&] {
        file.parts.reset();
        if (file.object != nullptr && file.layout.is_own) file.object->abort();
        file.object.reset();
        return file.made ? storage_.remove(file.layout.key) : Status();
      }));
    }
  }

  const RankFilesInput& input_;
  const plan::WriteList& list_;
  storage::Storage& storage_;
  const bool positional_;
  const bool direct_;
  const bool durable_;
  const bool in_order_;
  BlockFiller filler_;
  std::vector<File> files_;
  std::vector<Task> tasks_;
  size_t first_around_ = 0;        // of tasks_, which wait until those before them are written
  uint64_t block_bytes_ = 0;       // the longest of tasks_
  const File* current_ = nullptr;  // what a step works on, for messages
  bool batched_ = false;           // a file is worth it
  std::mutex engine_mutex_;
  std::optional<integrity::TensorDigester> hash_;  // of the one own file
  plan::WriteResult result_;
};

}  // namespace

Result<plan::WriteResult> write_rank_files(const RankFilesInput& input) {
  const plan::WriteList& list = input.contents.list;
  if (list.items.empty()) {
    plan::WriteResult nothing;
    nothing.rank = list.rank;
    nothing.generation = list.generation;
    nothing.plan_digest = list.plan_digest;
    if (input.call.on_staged) input.call.on_staged();
    return nothing;
  }
  SHW_ASSIGN_OR_RETURN(std::vector<format::FileLayout> layouts,
                       input.format.lay_out(input.location, input.contents));
  if (input.contents.hashes_file && (layouts.size() != 1 || !layouts.front().is_own))
    return internal_error("the SHA-256 of a file is made where a rank writes one of its own");
  return RankFilesWriter(input, std::move(layouts)).run();
}

}  // namespace shardwright::exec::internal

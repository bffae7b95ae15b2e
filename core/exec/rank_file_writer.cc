// SPDX-License-Identifier: Apache-2.0
//
// The file of one rank:
//   2a  created exclusively in the prefix of its generation
//   2b  header and extents, in tasks that several workers fill and write at their own positions
//       (one worker in ascending order where the storage cannot write at positions)
//   3a  index and trailer
//   3b  sync, close (its errors count), sync of the prefix: then bytes and names are durable
// A sync or close that failed is never tried again: the file is removed and the generation is dead.
#include "core/exec/rank_file_writer_internal.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/without_exceptions.h"
#include "core/exec/block_filler_internal.h"
#include "core/exec/generation_internal.h"
#include "core/exec/parallel_internal.h"
#include "core/exec/rank_index_internal.h"
#include "core/exec/write_tasks_internal.h"
#include "core/format/native/native_format.h"
#include "core/format/native/rank_file.h"
#include "core/storage/storage.h"

namespace shardwright::exec::internal {
namespace {

namespace native = format::native;

constexpr uint64_t kDirectFileBytes = uint64_t{1} << 20;  // below, the page cache is faster

class RankFileWriter {
 public:
  RankFileWriter(const RankFileInput& input, const native::FileLayout& layout)
      : input_(input),
        layout_(layout),
        storage_(*input.location.storage),
        key_(rank_file_location(input.location, input.list.generation, input.list.rank)),
        positional_((storage_.capabilities() & storage::kPositionalWrite) != 0),
        durable_(input.options.durability == Durability::kFull),
        filler_(source()) {}

  Result<plan::WriteResult> run() {
    if (Progress* progress = input_.call.progress; progress != nullptr)
      progress->bytes_total = layout_.data_bytes - native::kFileHeaderBytes;
    tasks_ = make_write_tasks(layout_, kWriteBlockBytes);
    Status status = without_exceptions("writing", [this] { return write_everything(); });
    if (status.ok()) return std::move(result_);
    remove_file();
    return status;
  }

 private:
  FillSource source() const {
    return {input_.state, input_.local, input_.list, layout_, input_.options.digests};
  }

  Status write_everything() {
    SHW_RETURN_IF_ERROR(step("create", [this] { return create(); }));
    SHW_RETURN_IF_ERROR(step("write", [this] { return write_extents(); }));
    SHW_RETURN_IF_ERROR(step("index", [this] { return write_index(); }));
    const Clock& clock = input_.runtime.clock();
    const int64_t begin_ns = clock.monotonic_ns();
    SHW_RETURN_IF_ERROR(step("sync", [this] { return sync_and_close(); }));
    SHW_RETURN_IF_ERROR(step("sync_prefix", [this] { return sync_names(); }));
    if (input_.sync_ns != nullptr) *input_.sync_ns = clock.monotonic_ns() - begin_ns;
    return {};
  }

  // One step: deadline and cancellation before it, its name on a failure.
  template <typename Work>
  Status step(std::string_view phase, const Work& work) {
    Status status = input_.call.control.check(phase);
    if (status.ok()) {
      const Trace::Span span(input_.trace, phase);
      status = work();
    }
    return status.ok() ? status : named(phase, std::move(status));
  }

  Status named(std::string_view phase, Status status) const {
    const bool has_file = !status.detail("file").empty();
    status = std::move(status)
                 .annotated(fmt::format("rank {} could not write {} (step '{}')", input_.list.rank,
                                        key_, phase))
                 .with_detail("phase", phase)
                 .with_detail("rank", fmt::to_string(input_.list.rank));
    return has_file ? status : std::move(status).with_detail("file", key_);
  }

  // Step 2a.
  Status create() {
    storage::OpenOptions options;
    options.mode = positional_ ? storage::OpenMode::kCreateVisible : storage::OpenMode::kCreate;
    options.file_mode = input_.options.file_mode;
    options.durable = durable_;
    options.direct = (storage_.capabilities() & storage::kDirectIo) != 0 &&
                     layout_.data_bytes >= kDirectFileBytes;
    options.expected_bytes = tasks_.back().end + estimated_tail_bytes();
    SHW_ASSIGN_OR_RETURN(object_, storage_.open(key_, options));
    created_ = true;
    return {};
  }

  uint64_t estimated_tail_bytes() const {
    constexpr uint64_t kItemBytes = 192;  // texts, shape and record of a chunk
    return input_.list.items.size() * kItemBytes + filler_.digests().size() * 16 + kWriteBlockBytes;
  }

  // Step 2b.
  Status write_extents() {
    WorkQueue queue(tasks_.size());
    const auto threads = static_cast<size_t>(input_.runtime.pool().thread_count());
    const size_t workers = positional_ ? std::min(tasks_.size(), threads + 1) : 1;
    return run_workers(input_.runtime.pool(), workers, &queue,
                       [this](WorkQueue* shared) { return write_tasks(shared); });
  }

  // One worker: one staging block, filled and written again and again.
  Status write_tasks(WorkQueue* queue) {
    size_t number = 0;
    if (!queue->next(&number)) return {};
    uint64_t block_bytes = 0;
    for (const WriteTask& task : tasks_) block_bytes = std::max(block_bytes, task.end - task.begin);
    SHW_ASSIGN_OR_RETURN(const StagingBuffer block,
                         input_.runtime.staging().acquire(block_bytes, input_.call.control));
    do {
      SHW_RETURN_IF_ERROR(input_.call.control.check("writing extents"));
      SHW_RETURN_IF_ERROR(write_task(tasks_[number], block.bytes()));
    } while (queue->next(&number));
    return {};
  }

  Status write_task(const WriteTask& task, std::span<std::byte> block) {
    const auto bytes = block.first(static_cast<size_t>(task.end - task.begin));
    {
      const Trace::Span span(input_.trace, "fill");
      SHW_RETURN_IF_ERROR(filler_.fill(task, bytes));
    }
    const Trace::Span span(input_.trace, "write block");
    SHW_RETURN_IF_ERROR(object_->write_at(task.begin, bytes));
    if (Progress* progress = input_.call.progress; progress != nullptr) {
      const uint64_t end = std::min(task.end, layout_.data_bytes);
      progress->bytes_done += end - std::min(end, std::max(task.begin, kExtentAlignmentBytes));
    }
    return {};
  }

  // Step 3a.
  Status write_index() {
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> index, encode_rank_index(source(), filler_));
    native::Trailer trailer;
    trailer.generation = input_.list.generation;
    trailer.rank = input_.list.rank;
    trailer.world_size = input_.list.world_size;
    trailer.index_position = tasks_.back().end;
    trailer.index_bytes = index.size();
    trailer.index_digest = integrity::xxh3_128(index);
    trailer.file_bytes = trailer.index_position + index.size() + native::kTrailerBytes;
    const std::vector<std::byte> end = native::encode_trailer(trailer);
    SHW_RETURN_IF_ERROR(write_tail(trailer.index_position, index, end));
    result_.rank = input_.list.rank;
    result_.generation = input_.list.generation;
    result_.plan_digest = input_.list.plan_digest;
    result_.has_file = true;
    result_.file_bytes = trailer.file_bytes;
    result_.index_position = trailer.index_position;
    result_.index_bytes = trailer.index_bytes;
    result_.index_digest = trailer.index_digest;
    result_.payload_bytes = input_.list.payload_bytes();
    return {};
  }

  // Index and trailer in blocks; only the last one ends at no multiple of the alignment.
  Status write_tail(uint64_t position, std::span<const std::byte> index,
                    std::span<const std::byte> trailer) {
    const uint64_t total = index.size() + trailer.size();
    const auto block_bytes = std::min<uint64_t>(total + kExtentAlignmentBytes, kWriteBlockBytes);
    SHW_ASSIGN_OR_RETURN(const StagingBuffer block,
                         input_.runtime.staging().acquire(block_bytes, input_.call.control));
    const uint64_t step = block_bytes / kExtentAlignmentBytes * kExtentAlignmentBytes;
    const auto copy_part = [&](uint64_t begin, std::span<std::byte> to) {
      for (std::byte& each : to) each = std::byte{0};
      const uint64_t index_end = std::min<uint64_t>(index.size(), begin + to.size());
      if (begin < index_end) std::memcpy(to.data(), index.data() + begin, index_end - begin);
      for (uint64_t at = std::max<uint64_t>(begin, index.size());
           at < std::min(total, begin + to.size()); ++at)
        to[at - begin] = trailer[at - index.size()];
    };
    for (uint64_t begin = 0; begin < total; begin += step) {
      const auto part = block.bytes().first(static_cast<size_t>(std::min(step, total - begin)));
      copy_part(begin, part);
      SHW_RETURN_IF_ERROR(object_->write_at(position + begin, part));
    }
    return {};
  }

  // Step 3b.
  Status sync_and_close() {
    if (!positional_) {
      const bool conditional = (storage_.capabilities() & storage::kConditionalCommit) != 0;
      SHW_RETURN_IF_ERROR(object_->commit(
          conditional ? storage::CommitCondition::kIfAbsent : storage::CommitCondition::kNone, 0));
      return object_->close();
    }
    if (durable_) SHW_RETURN_IF_ERROR(object_->sync());
    return object_->close();
  }

  Status sync_names() {
    result_.directory_sync_supported = true;
    if (!durable_) return {};
    return storage_.sync_prefix(generation_key(input_.location, input_.list.generation),
                                &result_.directory_sync_supported);
  }

  // Best effort: the failure that led here is what counts, and what stays is found by gc.
  void remove_file() noexcept {
    static_cast<void>(without_exceptions("removing a file", [this] {
      if (object_ != nullptr) object_->abort();
      object_.reset();
      return created_ ? storage_.remove(key_) : Status();
    }));
  }

  const RankFileInput& input_;
  const native::FileLayout& layout_;
  storage::Storage& storage_;
  const std::string key_;
  const bool positional_;
  const bool durable_;
  bool created_ = false;
  BlockFiller filler_;
  std::vector<WriteTask> tasks_;
  std::unique_ptr<storage::StorageObject> object_;
  plan::WriteResult result_;
};

}  // namespace

std::string rank_file_location(const format::Location& location, std::string_view generation,
                               int32_t rank) {
  return storage::join_key(location.prefix, native::rank_file_key(generation, rank));
}

Result<plan::WriteResult> write_rank_file(const RankFileInput& input) {
  if (input.list.items.empty()) {
    plan::WriteResult nothing;
    nothing.rank = input.list.rank;
    nothing.generation = input.list.generation;
    nothing.plan_digest = input.list.plan_digest;
    return nothing;
  }
  SHW_ASSIGN_OR_RETURN(const native::FileLayout layout, native::lay_out(input.list.items));
  return RankFileWriter(input, layout).run();
}

}  // namespace shardwright::exec::internal

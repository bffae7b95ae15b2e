// SPDX-License-Identifier: Apache-2.0
//
// The commit protocol of the native format, all eight steps; 4 to 8 are carried out here.
//
//   0  Before any write (save_planner.cc): options agreed, plan proved, free space known to
//   suffice.
//   1  The coordinator notes the identity of the manifest that is current, takes the fence that
//   keeps gc away, draws a generation id and makes its prefix exclusively; every name that leads
//   there is made durable (save_planner.cc).
//   2  Each rank creates its file in that prefix only and writes extents (rank_file_writer.cc).
//   3  Each rank writes index and trailer, syncs file and prefix, closes (rank_file_writer.cc).
//   4  All results meet here. Any failure fails the save. The coordinator looks at every file
//      itself: size and trailer must be those that the rank reported.
//   5  The manifest is built, encoded, decoded again (which proves catalog, covers and extents once
//      more) and written under the temporary name manifest.shw.<generation>, then synced.
//   6  Commit: it is renamed to manifest.shw under the condition that the identity of step 1 still
//      holds and the fence stood, and the directory is synced. When another generation won:
//      ABORTED. When only the directory sync failed: UNAVAILABLE with commit=unknown, and both
//      generations stay.
//   7  The outcome is told to all ranks (save.cc).
//   8  The generations that the replaced manifest named and the new one does not are removed. Never
//      part of success: what fails here becomes a note in the report.
//
// Until step 6 no byte, name or attribute of the previous checkpoint is touched. A failure before
// it removes the new generation, best effort. Deadline and cancellation act up to the beginning of
// step 5's write; from step 6 on they are ignored.
#include "core/exec/commit_internal.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/base/without_exceptions.h"
#include "core/exec/generation_internal.h"
#include "core/exec/parallel_internal.h"
#include "core/exec/rank_file_writer_internal.h"
#include "core/exec/writer_name_internal.h"
#include "core/format/native/manifest.h"
#include "core/format/native/native_format.h"
#include "core/format/native/rank_file.h"
#include "core/storage/storage.h"

namespace shardwright::exec::internal {
namespace {

namespace native = format::native;

bool is_unknown_outcome(const Status& status) {
  return status.detail("commit") == "unknown";
}

Status with_phase(Status status, std::string_view phase) {
  if (status.ok() || !status.detail("phase").empty()) return status;
  return std::move(status).with_detail("phase", phase);
}

// The generations that the replaced manifest named, newest first.
std::vector<std::string> named_before(const native::CurrentManifest& replaced) {
  std::vector<std::string> named;
  if (!replaced.exists || replaced.damaged) return named;
  named.push_back(replaced.generation);
  for (const std::string& each : replaced.kept_generations) named.push_back(each);
  return named;
}

// As many of them as the option keeps beside the new one.
std::vector<std::string> generations_to_keep(const CommitInput& input) {
  std::vector<std::string> named = named_before(input.replaced);
  const auto keep = static_cast<size_t>(input.options.keep_generations - 1);
  if (named.size() > keep) named.resize(keep);
  return named;
}

class CommitTask {
 public:
  CommitTask(const CommitInput& input, std::span<const plan::WriteResult> results)
      : input_(input),
        storage_(*input.location.storage),
        results_(results),
        manifest_key_(storage::join_key(input.location.prefix, native::kManifestName)) {}

  Result<Report> run() noexcept {
    Status status = without_exceptions("the commit", [this] { return prepare(); });
    if (status.ok()) status = publish();  // 6
    if (!status.ok()) {
      object_.reset();  // takes the temporary name away
      if (!is_unknown_outcome(status))
        discard_generation(input_.runtime, storage_, input_.generation_key);
      return status;
    }
    return std::move(report_);
  }

 private:
  // Steps 4 and 5.
  Status prepare() {
    SHW_RETURN_IF_ERROR(step("results", [this] { return check_results(); }));
    SHW_RETURN_IF_ERROR(step("files", [this] { return look_at_files(); }));
    SHW_RETURN_IF_ERROR(step("manifest", [this] { return encode_manifest(); }));
    return step("manifest_write", [this] { return write_manifest(); });
  }

  template <typename Work>
  Status step(std::string_view phase, const Work& work) {
    SHW_RETURN_IF_ERROR(with_phase(input_.call.control.check(phase), phase));
    const Trace::Span span(input_.trace, phase);
    return with_phase(work(), phase);
  }

  // Step 4: every rank took part in this very plan and succeeded; files are where the plan wants
  // them.
  Status check_results() {
    const size_t world = input_.plan.rank_count();
    if (results_.size() != world) {
      return invalid_argument(
          fmt::format("{} results for {} ranks; one per rank is wanted", results_.size(), world));
    }
    for (size_t rank = 0; rank < world; ++rank) SHW_RETURN_IF_ERROR(check_result(rank));
    return {};
  }

  Status check_result(size_t rank) {
    const plan::WriteResult& result = results_[rank];
    const plan::GlobalSavePlan& plan = input_.plan;
    const uint64_t planned = plan.writes.bytes[rank];
    const std::string rank_text = fmt::to_string(rank);
    if (std::cmp_not_equal(result.rank, rank)) {
      return invalid_argument(fmt::format("result {} is that of rank {}; results are wanted in "
                                          "rank order",
                                          rank, result.rank))
          .with_detail("rank", rank_text);
    }
    if (result.generation != plan.generation || result.plan_digest != plan.plan_digest) {
      return failed_precondition(
                 fmt::format("the result of rank {} is of another save (generation {}, here {})",
                             rank, escape_text(result.generation, 64), plan.generation))
          .with_detail("rank", rank_text)
          .with_detail("generation", result.generation);
    }
    if (result.has_file != (plan.writes.item_counts[rank] != 0) ||
        result.payload_bytes != planned) {
      return failed_precondition(fmt::format("rank {} reports {} bytes, its plan has {}", rank,
                                             result.payload_bytes, planned))
          .with_detail("rank", rank_text);
    }
    if (!result.directory_sync_supported) directory_sync_ = "unsupported";
    return {};
  }

  // Step 4: the coordinator sees every file as its rank reported it.
  Status look_at_files() {
    std::vector<int32_t> ranks;
    for (const plan::WriteResult& result : results_) {
      if (result.has_file) ranks.push_back(result.rank);
    }
    return run_each(input_.runtime.pool(), ranks.size(), input_.call.control,
                    [this, &ranks](size_t file) { return look_at_file(ranks[file]); });
  }

  Status look_at_file(int32_t rank) const {
    const plan::WriteResult& result = results_[static_cast<size_t>(rank)];
    const std::string key = rank_file_location(input_.location, result.generation, rank);
    Status status = check_file(key, result);
    if (status.ok()) return status;
    if (status.code() == StatusCode::kNotFound) {
      status = invalid_argument(
                   fmt::format("rank {} wrote {}, but the coordinator cannot see it: the path must "
                               "be on storage that all ranks share",
                               rank, escape_text(key)))
                   .with_detail("hint", "save to a path on a file system that all ranks mount");
    }
    return std::move(status).with_detail("rank", fmt::to_string(rank)).with_detail("file", key);
  }

  Status check_file(const std::string& key, const plan::WriteResult& result) const {
    SHW_ASSIGN_OR_RETURN(const std::unique_ptr<storage::StorageObject> object,
                         storage_.open(key, storage::OpenOptions{}));
    SHW_ASSIGN_OR_RETURN(const storage::ObjectStat stat, object->stat());
    if (stat.size_bytes != result.file_bytes || stat.size_bytes < native::kTrailerBytes) {
      return data_loss(fmt::format("{} has {} bytes, rank {} wrote {}", escape_text(key),
                                   stat.size_bytes, result.rank, result.file_bytes))
          .with_detail("expected", fmt::to_string(result.file_bytes))
          .with_detail("found", fmt::to_string(stat.size_bytes));
    }
    std::vector<std::byte> bytes(native::kTrailerBytes);
    SHW_RETURN_IF_ERROR(object->read_at(stat.size_bytes - native::kTrailerBytes, bytes));
    SHW_ASSIGN_OR_RETURN(const native::Trailer trailer, native::decode_trailer(bytes));
    if (trailer.generation != result.generation || trailer.rank != result.rank ||
        std::cmp_not_equal(trailer.world_size, input_.plan.rank_count()) ||
        trailer.index_position != result.index_position ||
        trailer.index_bytes != result.index_bytes || trailer.index_digest != result.index_digest ||
        trailer.file_bytes != result.file_bytes) {
      return data_loss(fmt::format("the trailer of {} is not the one that rank {} wrote",
                                   escape_text(key), result.rank));
    }
    return object->close();
  }

  // Step 5, in memory: what will be written decodes to what was meant.
  Status encode_manifest() {
    native::Manifest manifest;
    manifest.generation = input_.plan.generation;
    manifest.kept_generations = generations_to_keep(input_);
    manifest.world_size = static_cast<int32_t>(input_.plan.rank_count());
    manifest.created_unix_ns = input_.runtime.clock().unix_ns();
    manifest.writer = writer_name();
    manifest.digests = input_.options.digests;
    manifest.metadata = input_.options.metadata;
    for (const plan::WriteResult& result : results_) {
      if (!result.has_file) continue;
      manifest.files.push_back({result.rank, result.file_bytes, result.index_position,
                                result.index_bytes, result.index_digest});
    }
    manifest.catalog = input_.plan.catalog;
    SHW_ASSIGN_OR_RETURN(manifest_bytes_, native::encode_manifest(manifest));
    Result<native::Manifest> again = native::decode_manifest(manifest_bytes_);
    if (!again.ok()) {
      return internal_error(
          fmt::format("the new manifest does not decode: {}", again.status().to_string()));
    }
    const bool same =
        again->generation == manifest.generation && again->world_size == manifest.world_size &&
        again->files.size() == manifest.files.size() && again->metadata == manifest.metadata &&
        again->catalog.tensors.size() == manifest.catalog.tensors.size() &&
        again->catalog.chunk_count() == manifest.catalog.chunk_count() &&
        again->catalog.objects.size() == manifest.catalog.objects.size();
    if (!same) return internal_error("the new manifest decodes to something else");
    describe(manifest);
    return {};
  }

  void describe(const native::Manifest& manifest) {
    report_.operation = "save";
    report_.format = "native";
    report_.path = format::shown_path(input_.location);
    report_.generation = manifest.generation;
    report_.world_size = manifest.world_size;
    report_.tensors = manifest.catalog.tensors.size();
    report_.objects = manifest.catalog.objects.size();
    report_.chunks = manifest.catalog.chunk_count();
    report_.bytes_total = manifest.catalog.payload_bytes();
    report_.files = manifest.files.size();
    for (const native::ManifestFile& file : manifest.files) report_.bytes_files += file.size_bytes;
    const bool durable = input_.options.durability == Durability::kFull;
    report_.dir_fsync = durable ? directory_sync_ : "skipped";
  }

  // Step 5, in storage.
  Status write_manifest() {
    storage::OpenOptions options;
    options.mode = storage::OpenMode::kCreate;
    options.file_mode = input_.options.file_mode;
    options.durable = input_.options.durability == Durability::kFull;
    options.expected_bytes = manifest_bytes_.size();
    options.temporary_suffix = input_.plan.generation;
    SHW_ASSIGN_OR_RETURN(object_, storage_.open(manifest_key_, options));
    SHW_RETURN_IF_ERROR(object_->write_at(0, manifest_bytes_));
    return options.durable ? object_->sync() : Status();
  }

  // Step 6. No deadline from here on.
  Status publish() noexcept {
    const Trace::Span span(input_.trace, "commit");
    Condition condition;
    Status status = without_exceptions("the commit", [&] { return choose(&condition); });
    if (!status.ok()) return with_phase(std::move(status), "commit");
    status = without_exceptions("the commit",
                                [&] { return object_->commit(condition.kind, condition.version); });
    if (status.ok()) {
      close_object();
      return status;
    }
    if (status.code() == StatusCode::kAborted)
      status = std::move(status).annotated(
          "another save at this path was committed first; this one changed nothing");
    return with_phase(settle(std::move(status)), "commit");
  }

  // Files were looked at under the fence; if it broke since the save began, gc may have been here.
  Status check_fence() const {
    if (input_.fence == nullptr) return {};
    return input_.fence->check().annotated("this save changed nothing; save again");
  }

  struct Condition {
    storage::CommitCondition kind = storage::CommitCondition::kNone;
    uint64_t version = 0;
  };

  Status choose(Condition* condition) {
    SHW_RETURN_IF_ERROR(check_fence());
    const bool conditional = (storage_.capabilities() & storage::kConditionalCommit) != 0;
    if (conditional && !input_.replaced.exists) {
      condition->kind = storage::CommitCondition::kIfAbsent;
    } else if (conditional && input_.replaced.version != 0) {
      *condition = {storage::CommitCondition::kIfVersion, input_.replaced.version};
    } else {
      SHW_RETURN_IF_ERROR(compare_current());
      report_.notes.emplace_back(
          "this storage has no conditional commit; only one writer may save at this path");
    }
    return {};
  }

  // A failed close after the commit cannot undo it.
  void close_object() noexcept {
    static_cast<void>(without_exceptions("closing the manifest", [this] {
      const Status closed = object_->close();
      if (!closed.ok()) report_.notes.push_back("closing the manifest: " + closed.to_string());
      return Status();
    }));
    object_.reset();
  }

  // Without conditions: the best that can be had is to look right before.
  Status compare_current() const {
    SHW_ASSIGN_OR_RETURN(const native::CurrentManifest now, native::read_current(input_.location));
    if (now.exists == input_.replaced.exists && now.generation == input_.replaced.generation)
      return {};
    return aborted(fmt::format("another save at this path was committed first (generation {}); "
                               "this one changed nothing",
                               now.generation))
        .with_detail("generation", now.generation);
  }

  // A commit that failed may have taken place all the same (a lost answer): only what the storage
  // says now counts.
  Status settle(Status failure) const noexcept {
    if (is_unknown_outcome(failure)) return failure;
    const Result<bool> may_be =
        without_exceptions("looking at the manifest", [&]() -> Result<bool> {
          SHW_ASSIGN_OR_RETURN(const native::CurrentManifest now,
                               native::read_current(input_.location));
          return (now.damaged && !input_.replaced.damaged) || now.names(input_.plan.generation);
        });
    if (may_be.ok() && !*may_be) return failure;
    return unknown_commit(without_exceptions("the commit", [&] {
      return unavailable(fmt::format("it is unknown whether generation {} was committed: {}",
                                     input_.plan.generation, failure.to_string()))
          .with_detail("generation", input_.plan.generation);
    }));
  }

  const CommitInput& input_;
  storage::Storage& storage_;
  std::span<const plan::WriteResult> results_;
  const std::string manifest_key_;
  std::string directory_sync_ = "ok";
  std::vector<std::byte> manifest_bytes_;
  std::unique_ptr<storage::StorageObject> object_;
  Report report_;
};

}  // namespace

void discard_generation(Runtime& runtime, storage::Storage& storage,
                        std::string_view key) noexcept {
  const Result<uint64_t> removed =
      without_exceptions("removing a generation", [&] { return storage.remove_prefix(key); });
  if (removed.ok()) return;
  log(runtime.log(), LogLevel::kWarning, "exec", [&] {
    return fmt::format("generation {} of a failed save could not be removed: {}", key,
                       removed.status().to_string());
  });
}

Result<Report> publish_generation(const CommitInput& input,
                                  std::span<const plan::WriteResult> results) {
  return CommitTask(input, results).run();
}

std::vector<ReplacedGeneration> replaced_generations(const CommitInput& input) {
  std::vector<ReplacedGeneration> replaced;
  const std::vector<std::string> named = named_before(input.replaced);
  for (size_t i = generations_to_keep(input).size(); i < named.size(); ++i) {
    if (named[i] == input.plan.generation) continue;
    replaced.push_back({named[i], generation_key(input.location, named[i])});
  }
  return replaced;
}

void remove_replaced(const CommitInput& input, std::span<const ReplacedGeneration> replaced,
                     Report* report) {
  const Trace::Span span(input.trace, "clean up");
  for (const ReplacedGeneration& each : replaced) {
    const Result<uint64_t> bytes = without_exceptions(
        "removing a generation", [&] { return input.location.storage->remove_prefix(each.key); });
    static_cast<void>(without_exceptions("the report", [&] {
      if (bytes.ok()) {
        report->removed.push_back({each.generation, *bytes});
        return Status();
      }
      report->notes.push_back(fmt::format("generation {} could not be removed whole: {}",
                                          each.generation, bytes.status().to_string()));
      log(input.runtime.log(), LogLevel::kWarning, "exec", [&] { return report->notes.back(); });
      return Status();
    }));
  }
  if (input.replaced.damaged) {
    report->notes.emplace_back(
        "the manifest that was replaced was damaged; what it named was left to gc");
  }
}

}  // namespace shardwright::exec::internal

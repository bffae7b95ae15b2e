// SPDX-License-Identifier: Apache-2.0
//
// The commit protocol of all formats, all eight steps; 4 to 8 are carried out here. What a format
// does in them is its GenerationWriter's affair.
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
//   5  The manifest (of the native format; others have an index, or the file itself) is built,
//      encoded, decoded again (which proves catalog, covers and extents once more) and written
//      under a temporary name with the generation in it, then synced.
//   6  Commit: it is renamed to manifest.shw under the condition that the identity of step 1 still
//      holds and the fence stood, and the directory is synced. When another generation won:
//      ABORTED. When only the directory sync failed: UNAVAILABLE with commit=unknown, and both
//      generations stay.
//   7  What the format leaves to do behind its commit is done, so that readers that know nothing of
//      ours find the checkpoint; then the outcome is told to all ranks (save.cc). What cannot be
//      done becomes a note in all reports, and the next save goes on with it.
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
#include "core/exec/parallel_internal.h"
#include "core/storage/storage.h"

namespace shardwright::exec::internal {
namespace {

bool is_unknown_outcome(const Status& status) {
  return status.detail("commit") == "unknown";
}

Status with_phase(Status status, std::string_view phase) {
  if (status.ok() || !status.detail("phase").empty()) return status;
  return std::move(status).with_detail("phase", phase);
}

class CommitTask {
 public:
  CommitTask(const CommitInput& input, std::span<const plan::WriteResult> results)
      : input_(input), storage_(*input.location.storage), results_(results) {}

  Result<Report> run() noexcept {
    Status status = without_exceptions("the commit", [this] { return prepare(); });
    if (status.ok()) status = publish();  // 6
    if (!status.ok()) {
      object_.reset();  // takes the temporary name away
      if (!is_unknown_outcome(status))
        discard_generation(input_.runtime, storage_, input_.generation.parts());
      return status;
    }
    return std::move(report_);
  }

 private:
  // Steps 4 and 5.
  Status prepare() {
    SHW_RETURN_IF_ERROR(step("results", [this] { return check_results(); }));
    SHW_RETURN_IF_ERROR(step("files", [this] { return look_at_files(); }));
    SHW_RETURN_IF_ERROR(step("manifest", [this] { return encode(); }));
    return step("manifest_write", [this] { return open_commit(); });
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
    if (result.payload_bytes != planned) {
      return failed_precondition(fmt::format("rank {} reports {} bytes, its plan has {}", rank,
                                             result.payload_bytes, planned))
          .with_detail("rank", rank_text);
    }
    if (!result.directory_sync_supported) directory_sync_ = "unsupported";
    return {};
  }

  // Step 4: the coordinator sees what every rank reported.
  Status look_at_files() {
    return run_each(input_.runtime.pool(), results_.size(), input_.call.control,
                    [this](size_t rank) { return look_at_files_of(results_[rank]); });
  }

  Status look_at_files_of(const plan::WriteResult& result) const {
    Status status = input_.generation.check_written(result);
    if (status.ok()) return status;
    if (status.code() == StatusCode::kNotFound) {
      const std::string file(status.detail("file"));
      status = invalid_argument(
                   fmt::format("rank {} wrote {}, but the coordinator cannot see it: the path must "
                               "be on storage that all ranks share",
                               result.rank, escape_text(file)))
                   .with_detail("file", file)
                   .with_detail("hint", "save to a path on a file system that all ranks mount");
    }
    return std::move(status).with_detail("rank", fmt::to_string(result.rank));
  }

  // Step 5, in memory.
  Status encode() {
    SHW_RETURN_IF_ERROR(input_.generation.encode(results_, input_.runtime.clock().unix_ns()));
    describe();
    return {};
  }

  void describe() {
    const plan::Catalog& catalog = input_.plan.catalog;
    report_.operation = "save";
    report_.format = input_.format.name();
    report_.path = format::shown_path(input_.location);
    report_.generation = input_.plan.generation;
    report_.world_size = static_cast<int32_t>(input_.plan.rank_count());
    report_.tensors = catalog.tensors.size();
    report_.objects = catalog.objects.size();
    report_.chunks = catalog.chunk_count();
    report_.bytes_total = catalog.payload_bytes();
    report_.files = input_.generation.file_count();
    report_.bytes_files = input_.generation.file_bytes();
    const bool durable = input_.options.durability == Durability::kFull;
    report_.dir_fsync = durable ? directory_sync_ : "skipped";
    for (std::string& note : input_.generation.notes()) report_.notes.push_back(std::move(note));
  }

  // Step 5, in storage.
  Status open_commit() {
    SHW_ASSIGN_OR_RETURN(object_, input_.generation.open_commit());
    return {};
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
    std::string version;
  };

  Status choose(Condition* condition) {
    SHW_RETURN_IF_ERROR(check_fence());
    const bool conditional = storage::offers(storage_, storage::kConditionalCommit);
    if (conditional && input_.replaced.commits_anew) SHW_RETURN_IF_ERROR(compare_current());
    if (conditional && (!input_.replaced.exists || input_.replaced.commits_anew)) {
      condition->kind = storage::CommitCondition::kIfAbsent;
    } else if (conditional && !input_.replaced.version.empty()) {
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
    SHW_ASSIGN_OR_RETURN(const format::CurrentCheckpoint now,
                         input_.format.read_current(input_.location));
    if (now.exists == input_.replaced.exists && now.generation == input_.replaced.generation &&
        now.version == input_.replaced.version)
      return {};
    return aborted(fmt::format("another save at this path was committed first (generation {}); "
                               "this one changed nothing",
                               now.generation))
        .with_detail("generation", now.generation);
  }

  // A format without generations cannot say whose a checkpoint is that has changed.
  bool is_maybe_this(const format::CurrentCheckpoint& now) const {
    const format::CurrentCheckpoint& before = input_.replaced;
    if (now.names(input_.plan.generation) || (now.damaged && !before.damaged)) return true;
    const bool says_nothing = now.exists && !now.damaged && now.generation.empty();
    return says_nothing && (now.version.empty() || now.version != before.version);
  }

  // A commit that failed may have taken place all the same (a lost answer): only what the storage
  // says now counts.
  Status settle(Status failure) const noexcept {
    if (is_unknown_outcome(failure)) return failure;
    const Result<bool> may_be =
        without_exceptions("looking at the manifest", [&]() -> Result<bool> {
          SHW_ASSIGN_OR_RETURN(const format::CurrentCheckpoint now,
                               input_.format.read_current(input_.location));
          return is_maybe_this(now);
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
  std::string directory_sync_ = "ok";
  std::unique_ptr<storage::StorageObject> object_;
  Report report_;
};

}  // namespace

void discard_generation(Runtime& runtime, storage::Storage& storage,
                        const format::StoredParts& parts) noexcept {
  if (parts.prefix.empty() && parts.keys.empty()) return;
  const Result<uint64_t> removed = without_exceptions(
      "removing a generation", [&] { return format::remove_parts(storage, parts); });
  if (removed.ok()) return;
  log(runtime.log(), LogLevel::kWarning, "exec", [&] {
    return fmt::format("generation {} of a failed save could not be removed: {}", parts.generation,
                       removed.status().to_string());
  });
}

Result<Report> publish_generation(const CommitInput& input,
                                  std::span<const plan::WriteResult> results) {
  return CommitTask(input, results).run();
}

void remove_replaced(const CommitInput& input, std::span<const format::StoredParts> replaced,
                     Report* report) {
  const Trace::Span span(input.trace, "clean up");
  for (const format::StoredParts& each : replaced) {
    const Result<uint64_t> bytes = without_exceptions("removing a generation", [&] {
      return format::remove_parts(*input.location.storage, each);
    });
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

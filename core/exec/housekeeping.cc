// SPDX-License-Identifier: Apache-2.0
//
// gc removes only what it can prove to be nobody's: a generation that it found when it had the path
// for itself, that the manifest does not name, older than the grace period. The manifest is read
// again before each removal. A manifest that is missing or cannot be read stops it, and so does a
// path whose fence it does not hold; a storage without locks needs the full grace period instead.
#include "core/exec/housekeeping.h"

#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/exec/checkpoint.h"
#include "core/exec/path_fence_internal.h"
#include "core/format/run_directory.h"
#include "core/storage/storage.h"

namespace shardwright::exec {
namespace {

// What is current at the path; gc works beside a manifest that it could read and nowhere else.
Result<format::CurrentCheckpoint> read_committed(const format::FormatWriter& format,
                                                 const format::Location& location) {
  SHW_ASSIGN_OR_RETURN(format::CurrentCheckpoint current, format.read_current(location));
  const std::string where = escape_text(format::shown_path(location));
  if (current.damaged) {
    return data_loss(
        fmt::format("the manifest at '{}' is damaged, so it is unknown which generation it names; "
                    "gc removes nothing here",
                    where));
  }
  if (current.exists) return current;
  SHW_ASSIGN_OR_RETURN(const std::vector<format::GenerationInfo> generations,
                       format.list_generations(location));
  if (generations.empty()) return not_found(fmt::format("there is no checkpoint at '{}'", where));
  return failed_precondition(
             fmt::format("'{}' holds {} generations and no {}, so nothing says whether one of them "
                         "is a checkpoint; gc removes nothing here",
                         where, generations.size(), format.commit_key(location)))
      .with_detail("file", format.commit_key(location))
      .with_detail("hint",
                   "a first save runs or was killed here: save again and gc then, or remove the "
                   "directory yourself");
}

// Keeps saves away while gc removes; nothing when a save is running. Without locks only time does
// it.
Result<std::optional<internal::FenceLock>> fence_path(const format::FormatWriter& format,
                                                      const format::Location& location,
                                                      int64_t grace_ns, Report* report) {
  Result<internal::FenceLock> fence =
      internal::lock_path_alone({location, format.fence_key(location)});
  if (fence.status().code() == StatusCode::kUnimplemented) {
    if (grace_ns < kGcGraceNs) {
      return failed_precondition(fmt::format(
          "the storage of '{}' has no locks, so only time tells a generation that was "
          "left from one that is being written: gc needs a grace period of at least {} "
          "hours here",
          escape_text(format::shown_path(location)), kGcGraceNs / 1'000'000'000 / 3600));
    }
    report->notes.emplace_back(
        "this storage has no locks; only the grace period protects a save that is running");
    return std::optional<internal::FenceLock>(std::in_place);
  }
  SHW_RETURN_IF_ERROR(fence.status());
  if (*fence == nullptr) return std::optional<internal::FenceLock>();
  return std::optional<internal::FenceLock>(std::move(*fence));
}

// Reason why a generation stays, "" when it may go.
std::string reason_to_stay(const format::GenerationInfo& info, int64_t grace_ns, int64_t now_ns) {
  if (info.named) return "named";
  if (grace_ns >= 0 && now_ns - info.modified_ns < grace_ns) {
    return fmt::format(
        "generation {} is younger than the grace period; it may belong to a save that is running",
        info.generation);
  }
  return "";
}

// Removes what was listed of a generation, if the manifest still does not name it.
Status remove_unnamed(const format::FormatWriter& format, const format::Location& location,
                      storage::StorageLock* fence, const format::GenerationInfo& info,
                      Report* report) {
  if (fence != nullptr) SHW_RETURN_IF_ERROR(fence->check());
  SHW_ASSIGN_OR_RETURN(const format::CurrentCheckpoint current, read_committed(format, location));
  if (current.names(info.generation)) {
    report->notes.push_back(
        fmt::format("generation {} was committed while gc worked", info.generation));
    return {};
  }
  for (const std::string& key : info.keys) {
    Status removed = location.storage->remove(key);
    if (!removed.ok())
      return std::move(removed).annotated(fmt::format("cannot remove {}", escape_text(key)));
  }
  report->removed.push_back({info.generation, info.size_bytes});
  return {};
}

Status remove_all_unnamed(const format::FormatWriter& format, const format::Location& location,
                          storage::StorageLock* fence,
                          const std::vector<format::GenerationInfo>& doomed, Report* report) {
  for (const format::GenerationInfo& info : doomed) {
    Status removed = remove_unnamed(format, location, fence, info, report);
    if (!removed.ok()) {
      return std::move(removed).annotated(
          fmt::format("gc stopped at generation {} after it had removed {}", info.generation,
                      report->removed.size()));
    }
  }
  return {};
}

// Opens the checkpoint of a step and looks at the size of each of its files; OK = it is whole.
Status inspect_step(const format::FormatTable& formats, const format::Location& location) {
  SHW_ASSIGN_OR_RETURN(const auto opened, formats.open(location));
  for (const format::FileInfo& file : opened->files()) {
    const Result<storage::ObjectStat> stat =
        location.storage->stat(format::stored_key(location, file));
    if (stat.status().code() == StatusCode::kNotFound) {
      return data_loss(fmt::format("file {} is missing, the manifest names it", file.key))
          .with_detail("file", file.key);
    }
    SHW_RETURN_IF_ERROR(stat.status());
    if (stat->size_bytes != file.size_bytes) {
      return data_loss(fmt::format("file {} has {} bytes, the manifest names {}", file.key,
                                   stat->size_bytes, file.size_bytes))
          .with_detail("file", file.key);
    }
  }
  return {};
}

Status no_steps(const format::Location& location) {
  return not_found(fmt::format("no step directories (step-00000100, iter_0000100) below {}",
                               escape_text(format::shown_path(location))));
}

format::Location step_location(const format::Location& run, const std::string& name) {
  return {run.storage, storage::join_key(run.prefix, name)};
}

// Failures that say what a step is; all others say only that it could not be looked at.
bool is_not_whole(const Status& status) {
  return status.code() == StatusCode::kNotFound || status.code() == StatusCode::kDataLoss ||
         status.code() == StatusCode::kInvalidArgument;
}

// Sorts what may go from what stays, which the report says.
Result<std::vector<format::GenerationInfo>> doomed_generations(const format::FormatWriter& format,
                                                               const format::Location& location,
                                                               int64_t grace_ns, int64_t now_ns,
                                                               Report* report) {
  SHW_ASSIGN_OR_RETURN(std::vector<format::GenerationInfo> generations,
                       format.list_generations(location));
  std::vector<format::GenerationInfo> doomed;
  for (format::GenerationInfo& info : generations) {
    const std::string reason = reason_to_stay(info, grace_ns, now_ns);
    if (reason.empty()) {
      doomed.push_back(std::move(info));
    } else if (!info.named) {
      report->notes.push_back(reason);
    }
  }
  return doomed;
}

Status collect(Runtime& runtime, const format::Location& location, const GcOptions& options,
               Report* report) {
  SHW_ASSIGN_OR_RETURN(const format::Format* const found, runtime.formats().format_at(location));
  report->format = found->name();
  if (found->writer() == nullptr) {
    return unimplemented(
        fmt::format("'{}' is of format '{}', which is only read; gc removes "
                    "nothing here",
                    escape_text(format::shown_path(location)), found->name()));
  }
  const format::FormatWriter& format = *found->writer();
  const int64_t grace_ns = options.grace_ns == 0 ? kGcGraceNs : options.grace_ns;
  SHW_ASSIGN_OR_RETURN(const format::CurrentCheckpoint current, read_committed(format, location));
  report->generation = current.generation;
  std::optional<internal::FenceLock> fence(std::in_place);
  if (options.apply) {
    SHW_ASSIGN_OR_RETURN(fence, fence_path(format, location, grace_ns, report));
  }
  if (!fence.has_value()) {
    report->notes.emplace_back("a save is running at this path; nothing was removed");
    return {};
  }
  if (options.apply) {
    SHW_RETURN_IF_ERROR(format.settle(location));
    SHW_RETURN_IF_ERROR(format.finish_removal(location));
  }
  // Under the fence: what appears from here on is not in this list and is never touched.
  SHW_ASSIGN_OR_RETURN(
      const std::vector<format::GenerationInfo> doomed,
      doomed_generations(format, location, grace_ns, runtime.clock().unix_ns(), report));
  if (options.apply) return remove_all_unnamed(format, location, fence->get(), doomed, report);
  for (const format::GenerationInfo& info : doomed)
    report->removed.push_back({info.generation, info.size_bytes});
  report->notes.emplace_back("dry run: nothing was removed");
  return {};
}

// What gc says of itself when it ends.
std::string outcome(const Status& collected, const GcOptions& options, const Report& report) {
  if (!collected.ok()) return "gc failed: " + collected.to_string();
  uint64_t bytes = 0;
  for (const auto& each : report.removed) bytes += each.bytes;
  std::string text =
      fmt::format("gc {} {} generations of {} bytes", options.apply ? "removed" : "would remove",
                  report.removed.size(), bytes);
  for (const std::string& each : report.notes) text += "; " + each;
  return text;
}

}  // namespace

Result<Report> collect_garbage(Runtime& runtime, const format::Location& location,
                               const GcOptions& options) {
  Report report;
  report.operation = "gc";
  report.path = format::shown_path(location);
  const int64_t begin = runtime.clock().monotonic_ns();
  log(runtime.log(), LogLevel::kInfo, "exec",
      [&] { return fmt::format("gc looks at '{}'", escape_text(report.path)); });
  const Status collected = collect(runtime, location, options, &report);
  log(runtime.log(), LogLevel::kInfo, "exec", [&] { return outcome(collected, options, report); });
  SHW_RETURN_IF_ERROR(collected);
  report.elapsed_ns = runtime.clock().monotonic_ns() - begin;
  return report;
}

Result<RunInfo> list_run(Runtime& runtime, const format::Location& location) {
  SHW_ASSIGN_OR_RETURN(const format::RunSteps found, format::find_run_steps(location));
  RunInfo run;
  SHW_ASSIGN_OR_RETURN(run.tracker, format::tracker_text(location));
  if (found.empty() && run.tracker.empty()) return no_steps(location);
  run.tracked = format::tracked_step(found, run.tracker);
  for (const auto& [number, name] : found) {
    StepInfo step{.name = name, .step = number, .state = "whole", .message = ""};
    const Status status = inspect_step(runtime.formats(), step_location(location, name));
    if (status.ok()) {
      run.newest_whole = name;
    } else {
      step.state = status.code() == StatusCode::kNotFound ? "uncommitted" : "damaged";
      step.message = status.to_string();
    }
    run.steps.push_back(std::move(step));
  }
  return run;
}

Result<std::string> newest_whole_step(Runtime& runtime, const format::Location& location) {
  SHW_ASSIGN_OR_RETURN(const format::RunSteps found, format::find_run_steps(location));
  if (found.empty()) return no_steps(location);
  const std::string where = escape_text(format::shown_path(location));
  Status newest;  // what is wrong with the newest one
  for (auto step = found.rbegin(); step != found.rend(); ++step) {
    Status status = inspect_step(runtime.formats(), step_location(location, step->second));
    if (status.ok()) return step->second;
    if (!is_not_whole(status)) {
      return std::move(status).annotated(
          fmt::format("look whether {} of the run at '{}' is whole", step->second, where));
    }
    log(runtime.log(), LogLevel::kWarning, "exec", [&] {
      return fmt::format("{} of the run at '{}' is not whole and is passed over: {}", step->second,
                         where, status.to_string());
    });
    if (newest.ok()) newest = std::move(status);
  }
  return not_found(
             fmt::format("none of the {} steps of the run at '{}' is whole; the newest, {}: {}",
                         found.size(), where, found.rbegin()->second, newest.to_string()))
      .with_detail("file", found.rbegin()->second);
}

}  // namespace shardwright::exec

// SPDX-License-Identifier: Apache-2.0
//
// gc removes only what it can prove to be nobody's: a generation that the manifest does not name,
// older than the grace period, at a path whose lock it holds. The manifest is read before anything
// is listed and again, under the lock, before anything is removed; a manifest that cannot be read
// stops it.
#include "core/exec/housekeeping.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/exec/checkpoint.h"
#include "core/format/native/native_checkpoint.h"
#include "core/format/native/native_format.h"
#include "core/storage/storage.h"

namespace shardwright::exec {
namespace {

namespace native = format::native;

constexpr std::string_view kStepPrefix = "step-";
constexpr size_t kMaxStepDigits = 18;  // fits int64_t

// Whether gc may work on the path.
struct PathLock {
  std::shared_ptr<void> held;
  bool free = false;
  std::string note;
};

Result<PathLock> lock_path(const format::Location& location) {
  PathLock lock;
  Result<std::shared_ptr<void>> held =
      location.storage->try_lock(storage::join_key(location.prefix, native::kLockName));
  if (!held.ok() && held.status().code() == StatusCode::kUnimplemented) {
    lock.free = true;
    lock.note = "this storage has no locks; only the grace period protects a save that is running";
    return lock;
  }
  SHW_RETURN_IF_ERROR(held.status());
  lock.held = *held;
  lock.free = lock.held != nullptr;
  if (!lock.free) lock.note = "the path is locked by a save that is running; nothing is removed";
  return lock;
}

// Reason why a generation stays, "" when it may go.
std::string reason_to_stay(const native::GenerationInfo& info, int64_t grace_ns, int64_t now_ns) {
  if (info.named) return "named";
  if (grace_ns >= 0 && now_ns - info.modified_ns < grace_ns) {
    return fmt::format(
        "generation {} is younger than the grace period; it may belong to a save that is running",
        info.generation);
  }
  return "";
}

Status remove_generation(const format::Location& location, const native::GenerationInfo& info) {
  for (const std::string& key : info.keys) {
    Status removed = location.storage->remove(key);
    if (!removed.ok())
      return std::move(removed).annotated(fmt::format("cannot remove {}", escape_text(key)));
  }
  return {};
}

bool is_named(const native::CurrentManifest& current, std::string_view generation) {
  if (current.exists && current.generation == generation) return true;
  return std::find(current.kept_generations.begin(), current.kept_generations.end(), generation) !=
         current.kept_generations.end();
}

// "step-00000100" -> 100.
std::optional<int64_t> step_number(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kStepPrefix.size());
  if (digits.empty() || digits.size() > kMaxStepDigits) return std::nullopt;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 0)
    return std::nullopt;
  return number;
}

// Opens the checkpoint of a step and looks at the size of each of its files.
void inspect_step(const format::Location& location, StepInfo* step) {
  const Result<std::shared_ptr<const format::OpenedCheckpoint>> opened =
      format::open_checkpoint(location);
  Status status = opened.status();
  step->state = status.code() == StatusCode::kNotFound ? "uncommitted" : "damaged";
  if (opened.ok()) {
    for (const format::FileInfo& file : (*opened)->files()) {
      const Result<storage::ObjectStat> stat =
          location.storage->stat(storage::join_key(location.prefix, file.key));
      if (!stat.ok()) {
        status = stat.status();
      } else if (stat->size_bytes != file.size_bytes) {
        status = data_loss(fmt::format("file {} has {} bytes, the manifest names {}", file.key,
                                       stat->size_bytes, file.size_bytes));
      }
      if (!status.ok()) break;
    }
  }
  if (status.ok()) {
    step->state = "whole";
  } else {
    step->message = status.to_string();
  }
}

}  // namespace

Result<Report> collect_garbage(Runtime& runtime, const format::Location& location,
                               const GcOptions& options) {
  Report report;
  report.operation = "gc";
  report.format = "native";
  report.path = format::shown_path(location);
  const int64_t begin = runtime.clock().monotonic_ns();
  const int64_t grace_ns = options.grace_ns == 0 ? kGcGraceNs : options.grace_ns;
  PathLock lock{nullptr, true, ""};
  if (options.apply) {
    SHW_ASSIGN_OR_RETURN(lock, lock_path(location));
    if (!lock.note.empty()) report.notes.push_back(lock.note);
  }
  SHW_ASSIGN_OR_RETURN(const std::vector<native::GenerationInfo> generations,
                       native::list_generations(location));
  SHW_ASSIGN_OR_RETURN(const native::CurrentManifest current, native::read_current(location));
  if (current.damaged) return data_loss("the manifest was damaged while gc looked at it");
  if (!current.exists && generations.empty()) {
    return not_found(
        fmt::format("there is no checkpoint at '{}'", escape_text(format::shown_path(location))));
  }
  report.generation = current.generation;
  for (const native::GenerationInfo& info : generations) {
    if (!lock.free || is_named(current, info.generation)) continue;
    const std::string reason = reason_to_stay(info, grace_ns, runtime.clock().unix_ns());
    if (!reason.empty()) {
      if (reason != "named") report.notes.push_back(reason);
      continue;
    }
    if (options.apply) SHW_RETURN_IF_ERROR(remove_generation(location, info));
    report.removed.push_back({info.generation, info.size_bytes});
  }
  if (!options.apply) report.notes.emplace_back("dry run: nothing was removed");
  report.elapsed_ns = runtime.clock().monotonic_ns() - begin;
  return report;
}

Result<RunInfo> list_run(Runtime& runtime, const format::Location& location) {
  (void)runtime;                                    // opening needs neither workers nor staging
  std::set<std::pair<int64_t, std::string>> found;  // step-1 and step-00000001 differ
  const std::string prefix = location.prefix.empty() ? "" : location.prefix + "/";
  SHW_RETURN_IF_ERROR(location.storage->list(prefix, [&](const storage::ListEntry& entry) {
    const std::string_view rest = std::string_view(entry.key).substr(prefix.size());
    const size_t slash = rest.find('/');
    if (slash == std::string_view::npos) return Status();
    const std::optional<int64_t> number = step_number(rest.substr(0, slash));
    if (number.has_value()) found.emplace(*number, rest.substr(0, slash));
    return Status();
  }));
  if (found.empty()) {
    return not_found(fmt::format("no step directories (step-00000100) below {}",
                                 escape_text(format::shown_path(location))));
  }
  RunInfo run;
  for (const auto& [number, name] : found) {
    StepInfo step;
    step.name = name;
    step.step = number;
    inspect_step({location.storage, storage::join_key(location.prefix, name)}, &step);
    if (step.state == "whole") run.newest_whole = name;
    run.steps.push_back(std::move(step));
  }
  return run;
}

}  // namespace shardwright::exec

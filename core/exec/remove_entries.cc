// SPDX-License-Identifier: Apache-2.0
#include "core/exec/remove_entries.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/exec/path_fence_internal.h"
#include "core/format/format.h"
#include "core/format/saving.h"

namespace shardwright::exec {
namespace {

bool begins_so(std::string_view name, const RemoveOptions& options) {
  if (!name.starts_with(options.prefix)) return false;
  if (!options.whole_parts || name.size() == options.prefix.size()) return true;
  const std::string_view parts = "./";
  return parts.find(name[options.prefix.size()]) != std::string_view::npos ||
         parts.find(options.prefix.back()) != std::string_view::npos;
}

Status no_such_entry(const format::Location& location, const RemoveOptions& options) {
  return not_found(
             fmt::format("no entry of the checkpoint at '{}' has a name that begins with '{}'",
                         escape_text(format::shown_path(location)), escape_text(options.prefix)))
      .with_detail("parameter", "prefix");
}

// Saves and gc are kept away, where the storage has locks.
Result<internal::FenceLock> fence_alone(const format::FormatWriter& format,
                                        const format::Location& location, Report* report) {
  Result<internal::FenceLock> fence =
      internal::lock_path_alone({location, format.fence_key(location)});
  if (fence.status().code() == StatusCode::kUnimplemented) {
    report->notes.emplace_back(
        "this storage has no locks: nothing keeps a save away from the path meanwhile");
    return internal::FenceLock();
  }
  SHW_RETURN_IF_ERROR(fence.status());
  if (*fence != nullptr) return fence;
  return unavailable(fmt::format("a save is running at '{}'; try again when it has ended",
                                 escape_text(format::shown_path(location))));
}

}  // namespace

Result<Report> remove_entries(Runtime& runtime, const format::Location& location,
                              const RemoveOptions& options) {
  if (options.prefix.empty())
    return invalid_argument("a removal needs a prefix; to remove all, remove the directory")
        .with_detail("parameter", "prefix");
  const int64_t begin = runtime.clock().monotonic_ns();
  SHW_ASSIGN_OR_RETURN(const auto opened, runtime.formats().open(location));
  SHW_ASSIGN_OR_RETURN(const format::FormatWriter* const format,
                       runtime.formats().writer(opened->format_name()));
  Report report;
  report.operation = "remove";
  report.path = format::shown_path(location);
  report.format = format->name();
  internal::FenceLock fence;
  if (options.apply) {
    SHW_ASSIGN_OR_RETURN(fence, fence_alone(*format, location, &report));
    SHW_RETURN_IF_ERROR(format->settle(location));
  }
  SHW_ASSIGN_OR_RETURN(
      const format::EntryRemoval removal,
      format->remove_entries(
          location, [&options](std::string_view name) { return begins_so(name, options); },
          options.apply));
  if (removal.entries.empty() && !removal.was_cut_off) return no_such_entry(location, options);
  if (removal.was_cut_off) {
    report.notes.emplace_back(options.apply ? "a removal that was cut off here is finished"
                                            : "a removal was cut off here; one that is applied "
                                              "finishes it, whatever its prefix");
  }
  for (const auto& each : removal.entries) report.removed.push_back({each.name, each.size_bytes});
  for (const auto& each : removal.files) {
    report.files += 1;
    report.bytes_files += each.size_bytes;
    report.notes.push_back(fmt::format("file {} holds nothing else", escape_text(each.name)));
  }
  if (!options.apply) report.notes.emplace_back("dry run: nothing was removed");
  report.elapsed_ns = runtime.clock().monotonic_ns() - begin;
  return report;
}

}  // namespace shardwright::exec

// SPDX-License-Identifier: Apache-2.0
#include "core/format/other_formats.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/megatron/marker_file.h"
#include "core/format/megatron/publication.h"

namespace shardwright::format {

namespace {

constexpr std::string_view kOfMegatron[] = {megatron::kMarkerName, megatron::kJournalName};

Status refuse(const Location& location, std::span<const std::string_view> names,
              std::span<const std::string_view> patterns) {
  const std::string prefix = location.prefix.empty() ? "" : location.prefix + "/";
  std::string other;
  SHW_RETURN_IF_ERROR(
      location.storage->list(prefix, storage::kDelimiter, [&](const storage::ListEntry& entry) {
        const std::string_view name = std::string_view(entry.key).substr(prefix.size());
        const auto is_like = [&](std::string_view pattern) { return glob_matches(pattern, name); };
        if (std::ranges::find(names, name) != names.end() ||
            std::ranges::any_of(kFamiliesOfFiles, is_like, &Family::pattern) ||
            std::ranges::any_of(patterns, is_like))
          other = entry.key;
        return Status();
      }));
  if (other.empty()) return {};
  return failed_precondition(
             fmt::format("'{}' holds {} of another checkpoint, which one beside it would hide or "
                         "be hidden by; save into another directory, or move it away",
                         escape_text(shown_path(location)),
                         escape_text(std::string_view(other).substr(prefix.size()))))
      .with_detail("file", other);
}

}  // namespace

Status refuse_beside(const Location& location, std::span<const std::string_view> patterns) {
  return refuse(location, kOfMegatron, patterns);
}

Status refuse_beside_megatron(const Location& location,
                              std::span<const std::string_view> patterns) {
  return refuse(location, {}, patterns);
}

}  // namespace shardwright::format

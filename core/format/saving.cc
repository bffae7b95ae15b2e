// SPDX-License-Identifier: Apache-2.0
#include "core/format/saving.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/base/without_exceptions.h"

namespace shardwright::format {

bool CurrentCheckpoint::names(std::string_view which) const {
  if (!exists) return false;
  return generation == which ||
         std::ranges::find(kept_generations, which) != kept_generations.end();
}

void GenerationList::add(std::string_view generation, const storage::ListEntry& entry) {
  GenerationInfo& info = found_[std::string(generation)];
  info.generation = generation;
  info.named = current_.names(generation);
  info.modified_ns = std::max(info.modified_ns, entry.stat.modified_ns);
  info.size_bytes += entry.stat.size_bytes;
  info.keys.push_back(entry.key);
}

std::vector<GenerationInfo> GenerationList::take() {
  std::vector<GenerationInfo> generations;
  generations.reserve(found_.size());
  for (auto& [generation, info] : found_) generations.push_back(std::move(info));
  return generations;
}

Status check_names_generation(const CurrentCheckpoint& current, std::string_view commit_key) {
  if (!current.damaged) return {};
  return data_loss(fmt::format("{} is damaged, so it is unknown which generation it names",
                               escape_text(commit_key)))
      .with_detail("file", commit_key);
}

Status check_keeps_none(const SaveSettings& settings, std::string_view index) {
  if (settings.keep_generations <= 1) return {};
  return invalid_argument(fmt::format("keep_generations is {}; {} names one generation, so earlier "
                                      "ones cannot be kept",
                                      settings.keep_generations, index))
      .with_detail("parameter", "keep_generations");
}

Result<EntryRemoval> FormatWriter::remove_entries(const Location& location, const EntryNameRule&,
                                                  bool) const {
  return unimplemented(fmt::format("'{}' is of format '{}', from which no entries are removed: "
                                   "torch-dcp and megatron have an index that can do without them",
                                   escape_text(shown_path(location)), name()))
      .with_detail("file", shown_path(location));
}

bool is_written_in_order(const storage::Storage& storage, const RankContents& contents) {
  return contents.hashes_file || !storage::offers(storage, storage::kPositionalWrite);
}

Result<uint64_t> remove_parts(storage::Storage& storage, const StoredParts& parts) {
  uint64_t bytes = 0;
  Status first_failure;
  const auto note = [&](const Status& status) {
    if (first_failure.ok() && status.code() != StatusCode::kNotFound) first_failure = status;
  };
  if (!parts.prefix.empty()) {
    const Result<uint64_t> removed = storage.remove_prefix(parts.prefix);
    note(removed.status());
    bytes += removed.ok() ? *removed : 0;
  }
  // Each by itself: what cannot be looked at for want of memory may still go.
  for (const std::string& key : parts.keys) {
    uint64_t size_bytes = 0;
    static_cast<void>(without_exceptions("looking at a file", [&] {
      const Result<storage::ObjectStat> stat = storage.stat(key);
      if (stat.ok()) size_bytes = stat->size_bytes;
      return Status();
    }));
    const Status removed =
        without_exceptions("removing a file", [&] { return storage.remove(key); });
    note(removed);
    if (removed.ok()) bytes += size_bytes;
  }
  if (!first_failure.ok()) return first_failure;
  return bytes;
}

}  // namespace shardwright::format

// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_dcp/kept_openings.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/format/torch_dcp/file_names.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"
#include "core/integrity/digest.h"

namespace shardwright::format::torch_dcp {
namespace {

// Others, such as a log of the training, may change as they like.
bool is_of_checkpoint(std::string_view name) {
  return is_index_name(name) || is_digests_file(name) || is_data_file(name);
}

}  // namespace

Result<DirectoryListing> list_directory(const Location& location) {
  DirectoryListing listing;
  const std::string prefix = location.prefix.empty() ? "" : location.prefix + "/";
  SHW_RETURN_IF_ERROR(location.storage->list(prefix, storage::kDelimiter, [&](const auto& entry) {
    listing.emplace(entry.key.substr(prefix.size()), entry.stat);
    return Status();
  }));
  return listing;
}

std::optional<KeptOpenings::Seen> KeptOpenings::see(const Location& location,
                                                    std::span<const std::string> indexes,
                                                    const DirectoryListing& listing,
                                                    int64_t now_ns) {
  if (location.path.empty()) return std::nullopt;
  std::string text = fmt::format("{}\n", fmt::join(indexes, "\n"));
  for (const auto& [name, stat] : listing) {
    if (!is_of_checkpoint(name)) continue;
    const int64_t last = std::max(stat.changed_ns, stat.modified_ns);
    if (stat.changed_ns == 0 || last > now_ns - kSettledNs) return std::nullopt;
    fmt::format_to(std::back_inserter(text), "{}:{},{},{},{},{}\n", name.size(), name,
                   stat.size_bytes, stat.version, stat.modified_ns, stat.changed_ns);
  }
  return Seen{location.path, integrity::xxh3_128(std::as_bytes(std::span(text)))};
}

std::shared_ptr<const OpenedCheckpoint> KeptOpenings::find(const Seen& seen) {
  const MutexLock lock(mutex_);
  const auto found = std::ranges::find(
      kept_, seen.path, [](const Kept& kept) -> const auto& { return kept.seen.path; });
  if (found == kept_.end()) return nullptr;
  if (found->seen.files != seen.files) {
    kept_.erase(found);
    return nullptr;
  }
  kept_.splice(kept_.begin(), kept_, found);
  return found->opened;
}

void KeptOpenings::keep(Seen seen, uint64_t bytes, std::shared_ptr<const OpenedCheckpoint> opened) {
  if (bytes > kMostBytes) return;
  const MutexLock lock(mutex_);
  std::erase_if(kept_, [&](const Kept& kept) { return kept.seen.path == seen.path; });
  kept_.push_front({std::move(seen), bytes, std::move(opened)});
  uint64_t total = 0;
  const auto too_much = std::ranges::find_if(
      kept_, [&total](const Kept& kept) { return (total += kept.bytes) > kMostBytes; });
  kept_.erase(too_much, kept_.end());
}

}  // namespace shardwright::format::torch_dcp

// SPDX-License-Identifier: Apache-2.0
#include "core/format/saving.h"

#include <algorithm>

#include <fmt/format.h>

namespace shardwright::format {

bool CurrentCheckpoint::names(std::string_view which) const {
  if (!exists) return false;
  return generation == which ||
         std::ranges::find(kept_generations, which) != kept_generations.end();
}

Status remove_in_flight(const Location& location, std::string_view commit_key,
                        std::string_view generation) {
  return location.storage->remove(fmt::format("{}.{}", commit_key, generation));
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
  for (const std::string& key : parts.keys) {
    const Result<storage::ObjectStat> stat = storage.stat(key);
    const Status removed = storage.remove(key);
    note(removed);
    if (removed.ok() && stat.ok()) bytes += stat->size_bytes;
  }
  if (!first_failure.ok()) return first_failure;
  return bytes;
}

}  // namespace shardwright::format

// SPDX-License-Identifier: Apache-2.0
#include "core/format/opened_checkpoint.h"

#include <fmt/format.h>

namespace shardwright::format {

Status OpenedCheckpoint::locate(std::span<const StoredItem>) const {
  return {};
}

Result<std::unique_ptr<storage::StorageObject>> OpenedCheckpoint::open_derived() const {
  return internal_error(
      fmt::format("format '{}' makes nothing of its files, and was asked for it", format_name()));
}

Result<std::optional<uint32_t>> OpenedCheckpoint::item_checksum(const StoredItem&) const {
  return std::optional<uint32_t>();
}

Status OpenedCheckpoint::check_checksums(uint32_t) const {
  return {};
}

const std::vector<std::string>& OpenedCheckpoint::notes() const {
  static const std::vector<std::string> kNone;
  return kNone;
}

std::string shown_path(const Location& location) {
  if (!location.display.empty()) return location.display;
  return location.prefix.empty() ? "." : location.prefix;
}

std::string stored_key(const Location& location, const FileInfo& file) {
  return file.is_location ? location.prefix : storage::join_key(location.prefix, file.key);
}

}  // namespace shardwright::format

// SPDX-License-Identifier: Apache-2.0
#include "core/format/archive/archive_bytes.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"

namespace shardwright::format::archive {

Status ArchiveBytes::damaged(uint64_t offset, std::string_view what) const {
  // Both are at most the size of a file.
  const uint64_t at = file_offset + offset;
  return data_loss(fmt::format("file '{}': the archive is damaged at {}: {}", escape_text(file), at,
                               what))
      .with_detail("file", file)
      .with_detail("offset", fmt::to_string(at));
}

Status ArchiveBytes::read_range(uint64_t offset, std::span<std::byte> data,
                                std::string_view what) const {
  if (offset > size_bytes || data.size() > size_bytes - offset) {
    return damaged(size_bytes, fmt::format("it ends in {}", what));
  }
  return data.empty() ? Status() : read(offset, data);
}

ArchiveBytes bytes_of(storage::StorageObject& object, uint64_t offset, uint64_t size_bytes,
                      std::string file) {
  ArchiveBytes bytes;
  bytes.size_bytes = size_bytes;
  bytes.file = std::move(file);
  bytes.file_offset = offset;
  bytes.read = [&object, offset, name = bytes.file](uint64_t at, std::span<std::byte> data) {
    Status status = object.read_at(offset + at, data);
    if (status.code() != StatusCode::kOutOfRange) return status;
    return data_loss(fmt::format("file '{}' has become shorter while it was read: {}",
                                 escape_text(name), status.message()))
        .with_detail("file", name)
        .with_detail("offset", fmt::to_string(offset + at));
  };
  return bytes;
}

ArchiveBytes bytes_of(std::span<const std::byte> memory, uint64_t file_offset, std::string file) {
  ArchiveBytes bytes;
  bytes.size_bytes = memory.size();
  bytes.file = std::move(file);
  bytes.file_offset = file_offset;
  bytes.read = [memory](uint64_t at, std::span<std::byte> data) {
    std::memcpy(data.data(), memory.data() + at, data.size());
    return Status();
  };
  return bytes;
}

}  // namespace shardwright::format::archive

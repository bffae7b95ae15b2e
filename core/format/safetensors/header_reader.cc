// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "core/format/safetensors/header.h"
#include "core/format/safetensors/header_reader_internal.h"

namespace shardwright::format::safetensors::internal {

Result<StoredHeader> read_header(storage::Storage& storage, std::string_view key,
                                 std::string_view name) {
  SHW_ASSIGN_OR_RETURN(const std::unique_ptr<storage::StorageObject> object,
                       storage.open(key, storage::OpenOptions{}));
  SHW_ASSIGN_OR_RETURN(const storage::ObjectStat stat, object->stat());
  StoredHeader header;
  header.file_bytes = stat.size_bytes;
  header.version = stat.version;
  std::array<std::byte, kLengthBytes> length{};
  if (stat.size_bytes >= kLengthBytes) SHW_RETURN_IF_ERROR(object->read_at(0, length));
  SHW_ASSIGN_OR_RETURN(const uint64_t text_bytes, header_length(length, stat.size_bytes, name));
  SHW_ASSIGN_OR_RETURN(header.text, read_text(*object, kLengthBytes, text_bytes));
  SHW_RETURN_IF_ERROR(object->close());
  return header;
}

Result<std::string> read_text(storage::StorageObject& object, uint64_t offset, uint64_t size) {
  std::string text(static_cast<size_t>(size), '\0');
  SHW_RETURN_IF_ERROR(object.read_at(offset, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace shardwright::format::safetensors::internal

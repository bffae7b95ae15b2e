// SPDX-License-Identifier: Apache-2.0
#include "core/format/safetensors/stored_headers_internal.h"

#include <bit>
#include <cstring>

namespace shardwright::format::safetensors::internal {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers travel in little-endian order");

void append_number(uint64_t value, std::vector<std::byte>* bytes) {
  const auto raw = std::as_bytes(std::span(&value, 1));
  bytes->insert(bytes->end(), raw.begin(), raw.end());
}

void append_text(const std::string& text, std::vector<std::byte>* bytes) {
  append_number(text.size(), bytes);
  const auto raw = std::as_bytes(std::span(text));
  bytes->insert(bytes->end(), raw.begin(), raw.end());
}

Status cut_short() {
  return data_loss("what another rank read of the safetensors files came cut short");
}

}  // namespace

void append_index(const StoredIndex& index, bool is_directory, std::vector<std::byte>* bytes) {
  append_number(is_directory ? 1 : 0, bytes);
  append_text(index.name, bytes);
  append_text(index.text, bytes);
}

void append_file(const SourceFile& file, std::vector<std::byte>* bytes) {
  append_text(file.info.key, bytes);
  append_number(file.info.size_bytes, bytes);
  append_text(file.header, bytes);
}

Result<uint64_t> StoredHeaders::take_number() {
  uint64_t value = 0;
  if (bytes_.size() < sizeof(value)) return cut_short();
  std::memcpy(&value, bytes_.data(), sizeof(value));
  bytes_ = bytes_.subspan(sizeof(value));
  return value;
}

Result<std::string> StoredHeaders::take_text() {
  SHW_ASSIGN_OR_RETURN(const uint64_t size, take_number());
  if (size > bytes_.size()) return cut_short();
  std::string text(reinterpret_cast<const char*>(bytes_.data()), static_cast<size_t>(size));
  bytes_ = bytes_.subspan(static_cast<size_t>(size));
  return text;
}

Result<StoredIndex> StoredHeaders::take_index(bool* is_directory) {
  SHW_ASSIGN_OR_RETURN(const uint64_t kind, take_number());
  *is_directory = kind != 0;
  StoredIndex index;
  SHW_ASSIGN_OR_RETURN(index.name, take_text());
  SHW_ASSIGN_OR_RETURN(index.text, take_text());
  return index;
}

Result<SourceFile> StoredHeaders::take_file() {
  SourceFile file;
  SHW_ASSIGN_OR_RETURN(file.info.key, take_text());
  SHW_ASSIGN_OR_RETURN(file.info.size_bytes, take_number());
  SHW_ASSIGN_OR_RETURN(file.header, take_text());
  return file;
}

}  // namespace shardwright::format::safetensors::internal

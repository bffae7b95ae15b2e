// SPDX-License-Identifier: Apache-2.0
//
// What one rank read of a checkpoint, as bytes for the others: the index, if there is one, and the
// header of each file with its size. They are the texts that were stored, so that every rank
// decodes and proves them by itself. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/format/safetensors/contents_internal.h"

namespace shardwright::format::safetensors::internal {

struct StoredIndex {
  std::string name;  // "" = there is none
  std::string text;
};

void append_index(const StoredIndex& index, bool is_directory, std::vector<std::byte>* bytes);
void append_file(const SourceFile& file, std::vector<std::byte>* bytes);

// Takes the same bytes apart again, in order. DATA_LOSS for bytes that were cut short.
class StoredHeaders {
 public:
  explicit StoredHeaders(std::span<const std::byte> bytes) : bytes_(bytes) {}
  Result<StoredIndex> take_index(bool* is_directory);
  bool ended() const { return bytes_.empty(); }
  Result<SourceFile> take_file();

 private:
  Result<uint64_t> take_number();
  Result<std::string> take_text();

  std::span<const std::byte> bytes_;
};

}  // namespace shardwright::format::safetensors::internal

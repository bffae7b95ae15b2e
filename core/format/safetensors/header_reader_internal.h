// SPDX-License-Identifier: Apache-2.0
//
// What is in front of the buffer of a stored file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/storage/storage.h"

namespace shardwright::format::safetensors::internal {

struct StoredHeader {
  uint64_t file_bytes = 0;
  std::string version;  // of the storage; empty = not known
  std::string text;
};

// name: of the file in messages. NOT_FOUND when there is none, DATA_LOSS for an impossible length.
Result<StoredHeader> read_header(storage::Storage& storage, std::string_view key,
                                 std::string_view name);

Result<std::string> read_text(storage::StorageObject& object, uint64_t offset, uint64_t size);

}  // namespace shardwright::format::safetensors::internal

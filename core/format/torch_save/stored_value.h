// SPDX-License-Identifier: Apache-2.0
//
// StoredValue: what opening reads of a file of torch.save: the pickle of its value, and where its
// storages lie. Both kinds of files come to this: zip archives (torch 1.6 and later), and the older
// sequence of pickles with the storages behind it. It travels to other ranks as bytes.
//
//   old file = pickle of 0x1950a86a20f9469cfc6c, pickle of 1001, pickle of the system's facts,
//              pickle of the value, pickle of the list of keys, { i64 elements, their bytes }
//
// A value; the functions are pure but for the reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/format/opened_checkpoint.h"

namespace shardwright::format::torch_save {

struct StorageRecord {
  std::string key;
  uint64_t offset = 0;  // in the file
  uint64_t size_bytes = 0;
  uint32_t crc = 0;  // 0 = it has none
};

struct StoredValue {
  std::string name;  // of the file, for messages
  uint64_t file_bytes = 0;
  std::string version;  // of the storage; empty = not known; does not travel
  bool is_archive = true;
  bool is_script = false;
  uint64_t compressed_records = 0;  // that are no storages
  std::vector<std::byte> pickle;
  std::vector<StorageRecord> storages;  // by key

  // Null when there is none of the key.
  const StorageRecord* find(std::string_view key) const;
};

// The first bytes of an old file.
bool is_old_file(std::span<const std::byte> head);
// Of a zip archive.
bool is_zip_file(std::span<const std::byte> head);

// Reads what is in front of the payload, and the headers of storages. NOT_FOUND when the file is
// gone; DATA_LOSS, UNIMPLEMENTED, PERMISSION_DENIED, INVALID_ARGUMENT as TorchArchive::open.
Result<StoredValue> read_stored_value(const Location& location);
// Reads all records of an archive that are stored as they are, but for those whose payloads begin
// there (ascending), and compares their checksums. DATA_LOSS naming record and place.
Status check_records(const Location& location, std::span<const uint64_t> but_payloads);

// What another rank needs to open the same. DATA_LOSS for bytes that were cut short.
std::vector<std::byte> encode_stored_value(const StoredValue& stored);
Result<StoredValue> decode_stored_value(std::span<const std::byte> bytes);

}  // namespace shardwright::format::torch_save

// SPDX-License-Identifier: Apache-2.0
//
// ArchiveBytes: the bytes of one archive, which may be a part of a file, and how a range of them is
// read. A value that borrows what it reads from; as thread-safe as that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/storage/storage.h"

namespace shardwright::format::archive {

struct ArchiveBytes {
  uint64_t size_bytes = 0;
  // Fills all of data from an offset in the archive; the range lies inside of it.
  std::function<Status(uint64_t offset, std::span<std::byte> data)> read;
  std::string file;          // for messages
  uint64_t file_offset = 0;  // of the archive in that file

  // A failure that names the file and the place in it. offset counts from the archive's beginning.
  Status damaged(uint64_t offset, std::string_view what) const;
  // Reads a range of any size that a record of the archive names: DATA_LOSS when it leaves it.
  Status read_range(uint64_t offset, std::span<std::byte> data, std::string_view what) const;
};

// Range of a stored object, which outlives the bytes; the caller has seen that the object is that
// long. DATA_LOSS for an object that has become shorter.
ArchiveBytes bytes_of(storage::StorageObject& object, uint64_t offset, uint64_t size_bytes,
                      std::string file);
// Bytes in memory, which outlives them. file_offset: where they begin in the file.
ArchiveBytes bytes_of(std::span<const std::byte> memory, uint64_t file_offset, std::string file);

}  // namespace shardwright::format::archive

// SPDX-License-Identifier: Apache-2.0
//
// Steps of reading a zip archive that its sources share. Pure but for the reads.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/format/archive/archive_bytes.h"

namespace shardwright::format::archive::internal {

// What the end records say of the directory.
struct ZipEnd {
  uint64_t entries = 0;
  uint64_t directory_bytes = 0;
  uint64_t directory_offset = 0;
};

// The end of an archive with its last bytes.
struct ZipTail {
  std::vector<std::byte> bytes;
  uint64_t offset = 0;  // where they begin in the archive
  ZipEnd end;
};

// Finds the one end record that fits the archive, in its last tail_bytes or, when there is none, in
// all that a comment can move it. DATA_LOSS: none, or more than one; UNIMPLEMENTED: the archive has
// several parts.
Result<ZipTail> read_tail(const ArchiveBytes& archive, uint64_t tail_bytes);

Status above_limit(const ArchiveBytes& archive, std::string_view what, uint64_t limit);
// DATA_LOSS, PERMISSION_DENIED (unsafe) or RESOURCE_EXHAUSTED for a name that no entry may have.
// offset: of its record.
Status check_name(const ArchiveBytes& archive, uint64_t offset, std::string_view name);
// UNIMPLEMENTED for a payload that is not there as it is.
Status check_readable(const ArchiveBytes& archive, uint64_t offset, std::string_view name,
                      uint16_t method, uint16_t flags);

// Numbers of 32 bits, in the order of the zip64 field, which replaces those that are all ones.
// False when a field of extra leaves it, there are two of zip64, or it has too little.
bool widen(std::span<const std::byte> extra, std::initializer_list<uint64_t*> numbers);

}  // namespace shardwright::format::archive::internal

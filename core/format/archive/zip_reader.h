// SPDX-License-Identifier: Apache-2.0
//
// Zip archives as those of torch.save are: entries that are stored as they are, found by ranged
// reads. The central directory is what counts: sizes, checksums and places come from it, and a
// local header must say the same. Names are keys, never paths. What this proves before it answers:
//  - there is one end record, directly behind the directory (and its zip64 record), and a directory
//    of as many entries as it says;
//  - names are valid UTF-8, unique, relative and without "..";
//  - every entry lies in front of the directory and ends before the next one begins.
// Payload is only read when it is stored without compression or encryption. Immutable, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/format/archive/archive_bytes.h"

namespace shardwright::format::archive {

inline constexpr uint64_t kMaxZipEntries = uint64_t{4} << 20;
inline constexpr uint64_t kMaxZipNameBytes = 4096;
inline constexpr uint64_t kMaxZipDirectoryBytes = uint64_t{1} << 30;
// What a comment and bytes behind the end record may have together.
inline constexpr uint64_t kMaxZipTrailingBytes = 0xFFFF;
// First read: directory and end records of an archive with a handful of entries.
inline constexpr uint64_t kZipTailBytes = 4096;

struct ZipEntry {
  std::string_view name;  // valid as long as its directory
  uint16_t method = 0;    // 0 = stored
  uint16_t flags = 0;
  uint32_t crc = 0;           // of the payload; 0 = not known, or that of no bytes
  uint64_t stored_bytes = 0;  // what the payload takes in the archive
  uint64_t size_bytes = 0;
  uint64_t header_offset = 0;  // of its local header in the archive
  uint64_t end_offset = 0;     // header and payload end there at the latest
};

class ZipDirectory {
 public:
  // Two reads, one where everything fits in the first of tail_bytes. DATA_LOSS naming file and
  // offset: cut short, or what is promised above does not hold. PERMISSION_DENIED (unsafe): a name
  // that leads out. UNIMPLEMENTED: in several parts, or the directory is encrypted.
  // RESOURCE_EXHAUSTED: above a limit.
  static Result<ZipDirectory> read(const ArchiveBytes& archive,
                                   uint64_t tail_bytes = kZipTailBytes);

  size_t size() const { return begins_.size(); }
  ZipEntry entry(size_t index) const;
  std::optional<size_t> find(std::string_view name) const;

 private:
  ZipDirectory() = default;
  Status take_entries(const ArchiveBytes& archive, uint64_t offset, uint64_t count);
  std::string_view name_at(size_t index) const;
  Status index_names(const ArchiveBytes& archive, uint64_t offset);
  Status find_ends(const ArchiveBytes& archive, uint64_t directory_offset);

  std::vector<std::byte> bytes_;   // the directory as it is stored
  std::vector<uint64_t> begins_;   // of the record of each entry in bytes_
  std::vector<uint64_t> ends_;     // ZipEntry::end_offset
  std::vector<uint32_t> by_name_;  // sorted: names come from outside, so no hash of them is trusted
};

// Where the payload begins, by one small read of the local header. The failures of reading a
// directory; UNIMPLEMENTED for a payload that is compressed or encrypted.
Result<uint64_t> locate_payload(const ArchiveBytes& archive, const ZipEntry& entry);
// The whole payload, its checksum compared. RESOURCE_EXHAUSTED above limit_bytes.
Result<std::vector<std::byte>> read_payload(const ArchiveBytes& archive, const ZipEntry& entry,
                                            uint64_t limit_bytes);
// Reads the payload in steps and compares its checksum.
Status check_payload(const ArchiveBytes& archive, const ZipEntry& entry);
// Of all entries that are stored as they are, but for those whose payloads begin there (ascending).
// The failures of reading the directory, too.
struct PayloadsToCheck {
  uint64_t tail_bytes = kZipTailBytes;
  std::span<const uint64_t> but_payloads = {};
};
Status check_payloads(const ArchiveBytes& archive, const PayloadsToCheck& which = {});
// The checksum of the payload of so many bytes that begins there, 0 = it has none, by what follows
// it or else by the directory. DATA_LOSS when there is no such payload.
Result<uint32_t> crc_of_payload(const ArchiveBytes& archive, uint64_t payload_offset,
                                uint64_t size_bytes);

// An entry as the beginning of an archive shows it, without its directory.
struct ZipHeadEntry {
  std::string_view name;  // valid as long as the bytes that it was found in
  uint64_t payload_offset = 0;
  std::optional<uint64_t> size_bytes;  // not known when the header leaves it to what follows
  uint32_t crc = 0;                    // 0 = not known, as in a directory
};

// Most bytes that follow a payload whose header leaves crc and sizes to them.
inline constexpr uint64_t kMostDescriptorBytes = 24;
// The checksum of a payload of so many bytes, said by what follows it; nullopt when nothing that is
// of such a payload follows.
std::optional<uint32_t> crc_behind(std::span<const std::byte> bytes, uint64_t size_bytes);

// The entries whose local headers lie in the first bytes of an archive, in order: the place of a
// small archive's large payload, known without its directory. The last one may go on behind head;
// one that is compressed or encrypted is UNIMPLEMENTED. What is found says less than the directory
// does: whoever uses it proves the size by other means.
Result<std::vector<ZipHeadEntry>> read_zip_head(const ArchiveBytes& archive,
                                                std::span<const std::byte> head);

}  // namespace shardwright::format::archive

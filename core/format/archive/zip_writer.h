// SPDX-License-Identifier: Apache-2.0
//
// ZipWriter: archives of stored entries, byte for byte as torch.save writes them or plainer ones
// that it reads as well. Entries are added with their sizes, which fixes every place in the file;
// headers are made when the checksums are known. So payloads can be written in any order, by
// several threads, wherever they come from. Nothing is written here.
//
//   1. add() each entry; places are known from then on.
//   2. set_crc() each entry, once its payload is known.
//   3. Write header(), payload and trailer() of each entry where its place says, then end().
//
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash_index.h"
#include "core/base/result.h"

namespace shardwright::format::archive {

namespace internal {
class RecordBytes;
}

inline constexpr uint64_t kTorchAlignmentBytes = 64;
inline constexpr uint64_t kMaxZipAlignmentBytes = 32768;

enum class ZipFraming : uint8_t {
  // As torch.save since 1.6: crc and sizes behind the payload (not of an empty one), zero in front;
  // zip64 records at the end of every archive.
  kTorch,
  // Crc and sizes in front; zip64 only where a number needs it.
  kPlain,
};

class ZipWriter {
 public:
  // Where the parts of an entry lie in the archive.
  struct Place {
    uint64_t header_offset = 0;
    uint64_t payload_offset = 0;
    uint64_t size_bytes = 0;
    uint64_t end_offset = 0;  // behind the trailer
  };

  // file_offset: of the archive in its file, which alignments count from; torch.save counts from
  // the archive (0).
  explicit ZipWriter(ZipFraming framing, uint64_t file_offset = 0)
      : framing_(framing), file_offset_(file_offset) {}

  // The next entry's number. alignment_bytes: of its payload, a power of two up to
  // kMaxZipAlignmentBytes. ALREADY_EXISTS for a name that is there; INVALID_ARGUMENT for a name
  // that no reader would take, or another alignment; RESOURCE_EXHAUSTED for too many entries or
  // bytes.
  Result<size_t> add(std::string_view name, uint64_t size_bytes,
                     uint64_t alignment_bytes = kTorchAlignmentBytes);
  void set_crc(size_t entry, uint32_t crc) { entries_[entry].crc = crc; }

  size_t entry_count() const { return entries_.size(); }
  const Place& place(size_t entry) const { return entries_[entry].place; }
  // What lies between the header's offset and the payload's.
  std::vector<std::byte> header(size_t entry) const;
  // What lies between the payload's end and the entry's; may be nothing.
  std::vector<std::byte> trailer(size_t entry) const;
  // Where the directory and the end records go, and how many bytes they have.
  uint64_t end_offset() const { return next_; }
  uint64_t end_bytes() const;
  std::vector<std::byte> end() const;
  uint64_t total_bytes() const { return next_ + end_bytes(); }

 private:
  struct Entry {
    std::string name;
    Place place;
    uint32_t crc = 0;

    bool is_large() const;  // its sizes need 64 bits
    bool is_far() const;    // its offset does
  };
  bool has_trailer(const Entry& entry) const;
  uint64_t trailer_bytes(const Entry& entry) const;
  uint64_t local_wide_bytes(const Entry& entry) const;
  uint64_t central_bytes(const Entry& entry) const;
  uint16_t flags(const Entry& entry) const;
  bool ends_wide() const;
  void add_central(const Entry& entry, internal::RecordBytes* record) const;

  ZipFraming framing_;
  uint64_t file_offset_;
  std::vector<Entry> entries_;
  HashIndex names_;
  uint64_t next_ = 0;
  uint64_t directory_bytes_ = 0;
};

}  // namespace shardwright::format::archive

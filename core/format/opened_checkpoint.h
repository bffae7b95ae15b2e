// SPDX-License-Identifier: Apache-2.0
//
// OpenedCheckpoint: how bytes of a checkpoint are found, whoever wrote it. It gives a proved
// catalog, says where each chunk lies, and checks bytes after they were read; it does no caching of
// payload. Immutable after open, any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/plan/catalog.h"
#include "core/storage/storage.h"

namespace shardwright::format {

// A file of the checkpoint.
struct FileInfo {
  std::string key;  // relative to the checkpoint's key prefix
  uint64_t size_bytes = 0;
  int32_t rank = -1;
  bool is_location = false;  // it is what lies at the location; key is what messages call it
};

// Where the packed bytes of a chunk or object lie.
struct Extent {
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
};

// A stored chunk or byte object, by its number in the catalog.
struct StoredItem {
  enum class Kind : uint8_t { kChunk, kObject };
  Kind kind = Kind::kChunk;
  uint64_t number = 0;
};

class OpenedCheckpoint {
 public:
  virtual ~OpenedCheckpoint() = default;
  virtual std::string_view format_name() const = 0;  // "native"
  virtual std::string_view generation() const = 0;   // "" when the format has none
  // Equal where ranks that open the checkpoint by themselves find the same one.
  virtual std::string_view identity() const { return generation(); }
  virtual int32_t world_size() const = 0;       // ranks that wrote it, 1 where that is not known
  virtual int64_t created_unix_ns() const = 0;  // 0 = not known
  virtual const std::map<std::string, std::string>& metadata() const = 0;
  // Passed check_catalog; objects may be of any size. Unless it is partial, its chunks (copies
  // aside) cover each tensor exactly once: prove_all_covers has passed.
  virtual const plan::Catalog& catalog() const = 0;
  // Whether elements may be missing, or stored in boxes that overlap. A load then proves what it
  // takes; what it cannot prove is DATA_LOSS.
  virtual bool is_partial() const { return false; }
  virtual const std::vector<FileInfo>& files() const = 0;
  // What is odd but readable, one sentence each; for reports.
  virtual const std::vector<std::string>& notes() const;
  // Number of a file behind the last one, in which extents may lie: what no file holds as readers
  // want it and is made of files when it is read (DerivedItems). It is not listed, sized, verified.
  uint32_t derived_file() const { return static_cast<uint32_t>(files().size()); }
  // Opens it for reading by several threads; the checkpoint outlives it. INTERNAL for a format
  // whose extents lie in files.
  virtual Result<std::unique_ptr<storage::StorageObject>> open_derived() const;
  // Number of the file that has a chunk or object; for one in the derived file a file that it is
  // made of.
  virtual uint32_t chunk_file(size_t chunk) const = 0;
  virtual uint32_t object_file(size_t object) const = 0;
  // Prepares the file and finds the place when that was not done; the failures of prepare_file and
  // locate.
  virtual Result<Extent> chunk_extent(size_t chunk) const = 0;
  virtual Result<Extent> object_extent(size_t object) const = 0;
  // Whether places are known only after bytes beside each item were read (the header of an archive
  // that holds it), which locate does.
  virtual bool locates() const { return false; }
  // Finds the places of items whose files are prepared, ordered by file; extents then cost nothing.
  // Several threads call it with parts of what is wanted. Idempotent. DATA_LOSS naming file and
  // offset, ABORTED as prepare_file.
  virtual Status locate(std::span<const StoredItem> items) const;
  // Bytes of the protected unit; reads are widened to whole blocks of the chunk. 0 = the format has
  // no digests.
  virtual uint64_t digest_block_bytes() const = 0;
  // Loads what verification of this file needs (index, trailer) and checks it against the manifest;
  // idempotent and thread-safe. DATA_LOSS naming file and what differs; ABORTED when the file is
  // not the one that was opened.
  virtual Status prepare_file(uint32_t file) const = 0;
  // The same from storage again, whether the file was prepared before or not; for verification. A
  // file that passes is prepared.
  virtual Status check_file(uint32_t file) const = 0;
  // Whether files carry checksums of their own, of parts that are no blocks of chunks (records of
  // archives). What is read whole is compared with its checksum.
  virtual bool has_checksums() const { return false; }
  // CRC-32 of all bytes of a chunk or object as its extent has them; nullopt when none is stored of
  // just these. Its place is known (locate); may read some bytes beside it. DATA_LOSS as locate.
  virtual Result<std::optional<uint32_t>> item_checksum(const StoredItem& item) const;
  // Reads what else of the file has a checksum, and compares it. DATA_LOSS naming file, record and
  // place.
  virtual Status check_checksums(uint32_t file) const;
  // What digests of whole files say that stand in the checkpoint: one DATA_LOSS, naming the file,
  // for each that is missing or differs. For deep verification.
  virtual Result<std::vector<Status>> check_listed_files() const { return std::vector<Status>(); }
  // Reads again what open read. DATA_LOSS with detail file when it is gone or is not what was
  // opened; ABORTED "replaced while reading" as explain_missing, unless this generation is kept.
  virtual Status check_manifest() const = 0;
  // Checks the bytes of block number block of a chunk or object; prepare_file was called. DATA_LOSS
  // with details tensor, box, file, offset, length, expected, found.
  virtual Status check_chunk_block(size_t chunk, uint64_t block,
                                   std::span<const std::byte> bytes) const = 0;
  virtual Status check_object_block(size_t object, uint64_t block,
                                    std::span<const std::byte> bytes) const = 0;
  // What to report when a file of the checkpoint cannot be found any more: ABORTED "replaced while
  // reading" when another generation was committed since, else DATA_LOSS naming the file.
  virtual Status explain_missing(uint32_t file) const = 0;
  // Bytes of a file outside extents, index and trailer (padding), which must be zero; ascending
  // {offset, size}. Prepares the file.
  virtual Result<std::vector<Extent>> padding(uint32_t file) const = 0;
};

// Storage and prefix of a checkpoint.
struct Location {
  std::shared_ptr<storage::Storage> storage;  // co-owned by everything that reads from it
  std::string prefix;                         // key prefix, "" = the storage's root
  std::string display = {};                   // path as the host wrote it; "" = the prefix
  std::string path =
      {};  // absolute, for ranks to compare; "" = the prefix in a storage of the host
};

// What messages and reports call the place.
std::string shown_path(const Location& location);
// Key of a file of the checkpoint in the location's storage.
std::string stored_key(const Location& location, const FileInfo& file);

}  // namespace shardwright::format

// SPDX-License-Identifier: Apache-2.0
//
// TorchArchive: the records of a zip archive of torch.save. All lie below one root, which is the
// name that the file had, or "archive": data.pkl, the pickle of the value; data/KEY, the bytes of
// its storages; byteorder, version and others that say how they were written. Immutable, any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/format/archive/zip_reader.h"

namespace shardwright::format::archive {

inline constexpr uint64_t kMaxTorchPickleBytes = uint64_t{1} << 30;

class TorchArchive {
 public:
  // The failures of ZipDirectory::read and read_payload; INVALID_ARGUMENT for a zip archive that
  // torch.save has not written; UNIMPLEMENTED for big-endian numbers and newer versions.
  static Result<TorchArchive> open(const ArchiveBytes& bytes, uint64_t tail_bytes = kZipTailBytes);

  const ZipDirectory& directory() const { return directory_; }
  std::string_view root() const { return root_; }  // "archive/"
  // Whether it is a model with its code (TorchScript), which is never run.
  bool is_script() const { return is_script_; }
  // The pickle of the value, its checksum compared.
  Result<std::vector<std::byte>> read_pickle(const ArchiveBytes& bytes) const;
  // The record of a storage; nullopt when there is none.
  std::optional<ZipEntry> storage(std::string_view key) const;

 private:
  explicit TorchArchive(ZipDirectory directory) : directory_(std::move(directory)) {}
  Status find_root(const ArchiveBytes& bytes);
  Status check_records(const ArchiveBytes& bytes) const;
  // The text of a small record, nullopt when it is not there.
  Result<std::optional<std::string>> text_of(const ArchiveBytes& bytes,
                                             std::string_view record) const;

  ZipDirectory directory_;
  std::string root_;
  bool is_script_ = false;
};

}  // namespace shardwright::format::archive

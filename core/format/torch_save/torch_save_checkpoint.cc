// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_save/torch_save_checkpoint.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/torch_save/contents_internal.h"
#include "core/format/torch_save/stored_value.h"
#include "core/format/torch_save/torch_save_format.h"
#include "core/integrity/digest.h"

namespace shardwright::format::torch_save {
namespace {

using internal::Contents;

class TorchSaveCheckpoint final : public OpenedCheckpoint {
 public:
  // stored: what contents were made of.
  TorchSaveCheckpoint(Location location, const StoredValue& stored, Contents contents)
      : location_(std::move(location)),
        version_(stored.version),
        is_archive_(stored.is_archive),
        contents_(std::move(contents)),
        digest_(integrity::xxh3_128(encode_stored_value(stored))),
        identity_(to_hex(digest_)) {
    FileInfo file;
    file.key = stored.name;
    file.size_bytes = stored.file_bytes;
    file.is_location = true;
    files_.push_back(std::move(file));
  }

  std::string_view format_name() const override { return kFormatName; }
  std::string_view generation() const override { return ""; }
  std::string_view identity() const override { return identity_; }
  int32_t world_size() const override { return 1; }
  int64_t created_unix_ns() const override { return 0; }
  const std::map<std::string, std::string>& metadata() const override { return contents_.metadata; }
  const plan::Catalog& catalog() const override { return contents_.catalog; }
  const std::vector<FileInfo>& files() const override { return files_; }
  const std::vector<std::string>& notes() const override { return contents_.notes; }
  uint32_t chunk_file(size_t) const override { return internal::kTheFile; }
  uint32_t object_file(size_t) const override { return internal::kTheFile; }
  Result<Extent> chunk_extent(size_t chunk) const override { return contents_.chunks[chunk]; }
  Result<Extent> object_extent(size_t object) const override { return contents_.objects[object]; }
  Result<std::unique_ptr<storage::StorageObject>> open_derived() const override;
  uint64_t digest_block_bytes() const override { return 0; }
  Status prepare_file(uint32_t file) const override;
  Status check_file(uint32_t file) const override;
  bool has_checksums() const override { return is_archive_; }
  Result<std::optional<uint32_t>> item_checksum(const StoredItem& item) const override {
    const bool has_one =
        item.kind == StoredItem::Kind::kChunk && contents_.checksums[item.number] != 0;
    return has_one ? std::optional(contents_.checksums[item.number]) : std::nullopt;
  }
  Status check_checksums(uint32_t file) const override;
  Status check_manifest() const override { return {}; }
  Status check_chunk_block(size_t, uint64_t, std::span<const std::byte>) const override {
    return {};
  }
  Status check_object_block(size_t, uint64_t, std::span<const std::byte>) const override {
    return {};
  }
  Status explain_missing(uint32_t) const override {
    return data_loss(fmt::format("file '{}' was there when the checkpoint was opened and is gone",
                                 escape_text(files_[0].key)))
        .with_detail("file", files_[0].key);
  }
  Result<std::vector<Extent>> padding(uint32_t) const override { return std::vector<Extent>(); }

 private:
  // A file that is gone by now is damage.
  Status explained(Status status) const {
    return status.code() == StatusCode::kNotFound ? explain_missing(internal::kTheFile) : status;
  }

  Location location_;
  std::string version_;
  bool is_archive_;
  Contents contents_;
  std::vector<FileInfo> files_;
  Digest128 digest_;
  std::string identity_;
};

Result<std::unique_ptr<storage::StorageObject>> TorchSaveCheckpoint::open_derived() const {
  return contents_.derived.open(
      [this](uint32_t) -> Result<std::unique_ptr<storage::StorageObject>> {
        auto object = location_.storage->open(location_.prefix, {});
        if (!object.ok()) return explained(object.status());
        return object;
      },
      files_[0].key);
}

Status TorchSaveCheckpoint::prepare_file(uint32_t) const {
  const Result<storage::ObjectStat> stat = location_.storage->stat(location_.prefix);
  if (!stat.ok()) return explained(stat.status());
  const bool same = stat->size_bytes == files_[0].size_bytes &&
                    (version_.empty() || stat->version.empty() || stat->version == version_);
  if (same) return {};
  return aborted(fmt::format("file '{}' was replaced or changed since the checkpoint was opened; "
                             "open it again",
                             escape_text(files_[0].key)))
      .with_detail("file", files_[0].key);
}

Status TorchSaveCheckpoint::check_file(uint32_t) const {
  const Result<StoredValue> stored = read_stored_value(location_);
  if (!stored.ok()) return explained(stored.status());
  if (integrity::xxh3_128(encode_stored_value(*stored)) == digest_) return {};
  return data_loss(fmt::format("file '{}' has another value or other storages than when it was "
                               "opened",
                               escape_text(files_[0].key)))
      .with_detail("file", files_[0].key);
}

Status TorchSaveCheckpoint::check_checksums(uint32_t) const {
  if (!is_archive_) return {};
  std::vector<uint64_t> compared_by_readers;
  for (size_t chunk = 0; chunk < contents_.chunks.size(); ++chunk) {
    if (contents_.checksums[chunk] != 0)
      compared_by_readers.push_back(contents_.chunks[chunk].offset);
  }
  std::ranges::sort(compared_by_readers);
  return explained(check_records(location_, compared_by_readers));
}

Result<std::shared_ptr<const OpenedCheckpoint>> opened_from(const Location& location,
                                                            const StoredValue& stored) {
  SHW_ASSIGN_OR_RETURN(Contents contents, internal::contents_of(stored));
  return std::shared_ptr<const OpenedCheckpoint>(
      std::make_shared<TorchSaveCheckpoint>(location, stored, std::move(contents)));
}

}  // namespace

Result<std::shared_ptr<const OpenedCheckpoint>> open_file(const Location& location,
                                                          std::vector<std::byte>* bytes) {
  SHW_ASSIGN_OR_RETURN(const StoredValue stored, read_stored_value(location));
  if (bytes != nullptr) *bytes = encode_stored_value(stored);
  return opened_from(location, stored);
}

Result<std::shared_ptr<const OpenedCheckpoint>> open_shared(const Location& location,
                                                            std::span<const std::byte> bytes) {
  SHW_ASSIGN_OR_RETURN(const StoredValue stored, decode_stored_value(bytes));
  return opened_from(location, stored);
}

}  // namespace shardwright::format::torch_save

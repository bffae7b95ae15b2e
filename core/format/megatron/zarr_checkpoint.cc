// SPDX-License-Identifier: Apache-2.0
#include "core/format/megatron/zarr_checkpoint.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/megatron/megatron_format.h"
#include "core/format/megatron/zarr_contents.h"
#include "core/format/read_only_object.h"

namespace shardwright::format::megatron {
namespace {

// Elements of chunks that have no file.
class FillElements final : public ReadOnlyObject {
 public:
  FillElements(std::span<const std::byte> bytes, std::string name)
      : ReadOnlyObject(std::move(name)), bytes_(bytes) {}

  Status read_at(uint64_t offset, std::span<std::byte> data) override {
    if (offset > bytes_.size() || data.size() > bytes_.size() - offset)
      return out_of_range(fmt::format("{} bytes at {} of {} fill values", data.size(), offset,
                                      escape_text(name())));
    std::ranges::copy(bytes_.subspan(static_cast<size_t>(offset), data.size()), data.begin());
    return {};
  }
  Result<storage::ObjectStat> stat() override {
    storage::ObjectStat stat;
    stat.size_bytes = bytes_.size();
    return stat;
  }

 private:
  const std::span<const std::byte> bytes_;
};

// A file that is opened for each read: chunks at edges are as many files, and who reads them keeps
// what it opened.
class ReopenedFile final : public ReadOnlyObject {
 public:
  ReopenedFile(const OpenedCheckpoint& checkpoint, const Location& location, uint32_t file)
      : ReadOnlyObject(checkpoint.files()[file].key),
        checkpoint_(checkpoint),
        location_(location),
        file_(file) {}

  Status read_at(uint64_t offset, std::span<std::byte> data) override {
    SHW_RETURN_IF_ERROR(checkpoint_.prepare_file(file_));
    SHW_ASSIGN_OR_RETURN(const auto object, location_.storage->open(key(), {}));
    SHW_RETURN_IF_ERROR(object->read_at(offset, data));
    return object->close();
  }
  Result<storage::ObjectStat> stat() override { return location_.storage->stat(key()); }

 private:
  std::string key() const { return stored_key(location_, checkpoint_.files()[file_]); }

  const OpenedCheckpoint& checkpoint_;
  const Location& location_;
  const uint32_t file_;
};

class ZarrCheckpoint final : public OpenedCheckpoint {
 public:
  ZarrCheckpoint(Location location, ZarrContents contents)
      : location_(std::move(location)),
        contents_(std::move(contents)),
        identity_(to_hex(contents_.digest)) {}

  std::string_view format_name() const override { return kFormatName; }
  std::string_view generation() const override { return ""; }
  std::string_view identity() const override { return identity_; }
  int32_t world_size() const override { return 1; }
  int64_t created_unix_ns() const override { return 0; }
  const std::map<std::string, std::string>& metadata() const override { return metadata_; }
  const plan::Catalog& catalog() const override { return contents_.catalog; }
  const std::vector<FileInfo>& files() const override { return contents_.files; }
  const std::vector<std::string>& notes() const override { return contents_.notes; }
  uint32_t chunk_file(size_t chunk) const override { return contents_.chunk_files[chunk]; }
  uint32_t object_file(size_t object) const override { return contents_.object_files[object]; }
  Result<Extent> chunk_extent(size_t chunk) const override { return contents_.chunks[chunk]; }
  Result<Extent> object_extent(size_t object) const override { return contents_.objects[object]; }
  Result<std::unique_ptr<storage::StorageObject>> open_derived() const override;
  uint64_t digest_block_bytes() const override { return 0; }
  Status prepare_file(uint32_t file) const override;
  Status check_file(uint32_t file) const override { return prepare_file(file); }
  Status check_manifest() const override { return {}; }
  Status check_chunk_block(size_t, uint64_t, std::span<const std::byte>) const override {
    return {};
  }
  Status check_object_block(size_t, uint64_t, std::span<const std::byte>) const override {
    return {};
  }
  Status explain_missing(uint32_t file) const override;
  Result<std::vector<Extent>> padding(uint32_t) const override { return std::vector<Extent>(); }

 private:
  const Location location_;
  const ZarrContents contents_;
  const std::string identity_;
  const std::map<std::string, std::string> metadata_;
};

Result<std::unique_ptr<storage::StorageObject>> ZarrCheckpoint::open_derived() const {
  return contents_.derived.open(
      [this](uint32_t file) -> Result<std::unique_ptr<storage::StorageObject>> {
        if (file == kFillElements)
          return std::unique_ptr<storage::StorageObject>(
              std::make_unique<FillElements>(contents_.fills, shown_path(location_)));
        return std::unique_ptr<storage::StorageObject>(
            std::make_unique<ReopenedFile>(*this, location_, file));
      },
      shown_path(location_));
}

Status ZarrCheckpoint::prepare_file(uint32_t file) const {
  if (file >= files().size())
    return out_of_range(fmt::format("file {} of {}", file, files().size()));
  const auto stat = location_.storage->stat(stored_key(location_, files()[file]));
  if (stat.status().code() == StatusCode::kNotFound) return explain_missing(file);
  SHW_RETURN_IF_ERROR(stat.status());
  const std::string& version = contents_.versions[file];
  const bool is_same = stat->size_bytes == files()[file].size_bytes &&
                       (version.empty() || stat->version.empty() || stat->version == version);
  if (is_same) return {};
  return aborted(fmt::format("file '{}' was replaced or changed since the checkpoint was opened; "
                             "open it again",
                             escape_text(files()[file].key)))
      .with_detail("file", files()[file].key);
}

Status ZarrCheckpoint::explain_missing(uint32_t file) const {
  return data_loss(fmt::format("file '{}' was there when the checkpoint was opened and is gone",
                               escape_text(files()[file].key)))
      .with_detail("file", files()[file].key);
}

}  // namespace

Result<std::shared_ptr<const OpenedCheckpoint>> open_zarr(const Location& location) {
  SHW_ASSIGN_OR_RETURN(ZarrContents contents, read_zarr_contents(location));
  return std::shared_ptr<const OpenedCheckpoint>(
      std::make_shared<ZarrCheckpoint>(location, std::move(contents)));
}

}  // namespace shardwright::format::megatron

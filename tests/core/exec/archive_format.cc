// SPDX-License-Identifier: Apache-2.0
#include "tests/core/exec/archive_format.h"

#include <array>
#include <cstring>
#include <map>
#include <mutex>

#include <fmt/format.h>

namespace shardwright::exec::test {
namespace {

using format::Extent;
using format::FileInfo;
using format::StoredItem;

constexpr uint64_t kMagic = 0x3056'4948'4352'4153;
constexpr uint64_t kHeaderBytes = 16;  // magic, bytes between the header and the payload

class ArchiveCheckpoint final : public format::OpenedCheckpoint {
 public:
  ArchiveCheckpoint(format::Location location, std::shared_ptr<const Archive> archive,
                    uint64_t file_bytes)
      : location_(std::move(location)), archive_(std::move(archive)) {
    files_.push_back({std::string(kArchiveFile), file_bytes});
  }

  std::string_view format_name() const override { return "archive"; }
  std::string_view generation() const override { return ""; }
  int32_t world_size() const override { return 1; }
  int64_t created_unix_ns() const override { return 0; }
  const std::map<std::string, std::string>& metadata() const override { return metadata_; }
  const plan::Catalog& catalog() const override { return archive_->catalog; }
  bool is_partial() const override { return archive_->is_partial; }
  const std::vector<FileInfo>& files() const override { return files_; }
  uint32_t chunk_file(size_t) const override { return 0; }
  uint32_t object_file(size_t) const override { return 0; }
  bool locates() const override { return true; }
  Status locate(std::span<const StoredItem> items) const override {
    for (const StoredItem& item : items) SHW_RETURN_IF_ERROR(payload_of(item).status());
    return {};
  }
  Result<Extent> chunk_extent(size_t chunk) const override {
    SHW_ASSIGN_OR_RETURN(const uint64_t payload, payload_of({StoredItem::Kind::kChunk, chunk}));
    return Extent{0, payload, catalog().chunk_bytes(chunk)};
  }
  Result<Extent> object_extent(size_t object) const override {
    SHW_ASSIGN_OR_RETURN(const uint64_t payload, payload_of({StoredItem::Kind::kObject, object}));
    return Extent{0, payload, catalog().objects[object].size_bytes};
  }
  uint64_t digest_block_bytes() const override { return 0; }
  Status prepare_file(uint32_t) const override { return {}; }
  Status check_file(uint32_t) const override { return {}; }
  Status check_manifest() const override { return {}; }
  Status check_chunk_block(size_t, uint64_t, std::span<const std::byte>) const override {
    return {};
  }
  Status check_object_block(size_t, uint64_t, std::span<const std::byte>) const override {
    return {};
  }
  Status explain_missing(uint32_t) const override { return data_loss("the archive is gone"); }
  Result<std::vector<Extent>> padding(uint32_t) const override { return std::vector<Extent>(); }

 private:
  // Reads the item's header unless that was done.
  Result<uint64_t> payload_of(const StoredItem& item) const {
    const uint64_t at = archive_->header_of(item);
    const std::lock_guard lock(mutex_);
    if (const auto known = payloads_.find(at); known != payloads_.end()) return known->second;
    SHW_ASSIGN_OR_RETURN(const std::unique_ptr<storage::StorageObject> object,
                         location_.storage->open(stored_key(location_, files_[0]), {}));
    std::array<uint64_t, 2> header{};
    ++archive_->headers_read;
    SHW_RETURN_IF_ERROR(object->read_at(at, std::as_writable_bytes(std::span(header))));
    if (header[0] != kMagic) {
      return data_loss(fmt::format("no header at {} of file {}", at, kArchiveFile))
          .with_detail("file", kArchiveFile)
          .with_detail("offset", std::to_string(at));
    }
    return payloads_[at] = at + kHeaderBytes + header[1];
  }

  const format::Location location_;
  const std::shared_ptr<const Archive> archive_;
  std::vector<FileInfo> files_;
  std::map<std::string, std::string> metadata_;
  mutable std::mutex mutex_;
  mutable std::map<uint64_t, uint64_t> payloads_;  // by where the header begins
};

class ArchiveFormat final : public format::Format {
 public:
  explicit ArchiveFormat(std::shared_ptr<const Archive> archive) : archive_(std::move(archive)) {}

  std::string_view name() const override { return "archive"; }
  std::span<const std::string_view> markers() const override { return {&kArchiveMarker, 1}; }
  bool recognises(const format::Sight& sight) const override {
    return sight.has_name(kArchiveMarker);
  }
  Result<std::shared_ptr<const format::OpenedCheckpoint>> open(
      const format::Sight& sight, std::vector<std::byte>* metadata) const override {
    if (metadata != nullptr) metadata->clear();
    return open_shared(sight.location, {});
  }
  Result<std::shared_ptr<const format::OpenedCheckpoint>> open_shared(
      const format::Location& location, std::span<const std::byte>) const override {
    SHW_ASSIGN_OR_RETURN(const storage::ObjectStat stat,
                         location.storage->stat(storage::join_key(location.prefix, kArchiveFile)));
    return std::shared_ptr<const format::OpenedCheckpoint>(
        std::make_shared<ArchiveCheckpoint>(location, archive_, stat.size_bytes));
  }

 private:
  const std::shared_ptr<const Archive> archive_;  // co-owned with the test
};

}  // namespace

void Archive::add(const Dense& tensor, const std::vector<Box>& boxes) {
  std::vector<plan::CatalogBuilder::Chunk> chunks;
  for (const Box& box : boxes) {
    chunks.push_back({box, 0});
    chunks_.push_back(append(tensor.box_bytes(box)));
  }
  plan::CatalogBuilder::Tensor described;
  described.name = tensor.name;
  described.dtype = tensor.dtype;
  described.kind = EntryKind::kSharded;
  described.shape = tensor.shape;
  ASSERT_TRUE(plan::CatalogBuilder(&catalog).add_tensor(described, chunks).ok());
}

void Archive::add_object(std::string_view name, std::string_view content_type,
                         std::span<const std::byte> bytes) {
  plan::ObjectRecord record;
  record.size_bytes = bytes.size();
  objects_.push_back(append(bytes));
  ASSERT_TRUE(plan::CatalogBuilder(&catalog, uint64_t{1} << 40)
                  .add_object(record, name, "", content_type)
                  .ok());
}

void Archive::put(CheckpointFixture& fixture, const std::string& prefix) const {
  fixture.put(prefix + "/" + std::string(kArchiveFile), file_);
  fixture.put(prefix + "/" + std::string(kArchiveMarker), {});
}

uint64_t Archive::header_of(const StoredItem& item) const {
  return item.kind == StoredItem::Kind::kChunk ? chunks_.at(item.number) : objects_.at(item.number);
}

// The gap between header and payload differs from item to item.
uint64_t Archive::append(std::span<const std::byte> payload) {
  const uint64_t at = file_.size();
  const std::array<uint64_t, 2> header{kMagic, 1 + at % 7};
  const auto bytes = std::as_bytes(std::span(header));
  file_.insert(file_.end(), bytes.begin(), bytes.end());
  file_.resize(file_.size() + header[1]);
  file_.insert(file_.end(), payload.begin(), payload.end());
  return at;
}

std::shared_ptr<const format::Format> make_archive_format(std::shared_ptr<const Archive> archive) {
  return std::make_shared<ArchiveFormat>(std::move(archive));
}

}  // namespace shardwright::exec::test

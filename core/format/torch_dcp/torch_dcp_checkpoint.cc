// SPDX-License-Identifier: Apache-2.0
//
// The place of a chunk is one word, found by whoever wants it first: the offset of its elements in
// its file, or, for a view whose elements lie apart, its offset in the derived file; and whether it
// is the whole of a record, which has a checksum then. Two threads that find the same place write
// the same word, or use two parts of the derived file.
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/concurrency/mutex.h"
#include "core/format/archive/archive_bytes.h"
#include "core/format/archive/zip_reader.h"
#include "core/format/torch_dcp/contents_internal.h"
#include "core/format/torch_dcp/derived_views_internal.h"
#include "core/format/torch_dcp/item_digests_internal.h"
#include "core/format/torch_dcp/item_heads_internal.h"
#include "core/format/torch_dcp/tensor_item.h"
#include "core/format/torch_dcp/transformed_item.h"
#include "core/integrity/digest.h"

namespace shardwright::format::torch_dcp {
namespace {

using internal::Contents;
using internal::Opened;

constexpr uint64_t kNotFound = UINT64_MAX;
constexpr uint64_t kInDerived = uint64_t{1} << 63;
constexpr uint64_t kIsRecord = uint64_t{1} << 62;
constexpr uint64_t kMostCheckedBytes = uint64_t{64} << 20;  // of an object behind a transform

class TorchDcpCheckpoint final : public OpenedCheckpoint {
 public:
  TorchDcpCheckpoint(Location location, const Opened& opened, Contents contents)
      : location_(std::move(location)),
        contents_(std::move(contents)),
        places_(std::make_unique<std::atomic<uint64_t>[]>(contents_.chunks.size())),
        checksums_(std::make_unique<std::atomic<uint32_t>[]>(contents_.chunks.size())) {
    for (size_t i = 0; i < contents_.chunks.size(); ++i) places_[i].store(kNotFound);
    DerivedItems items;
    for (const ByteObject& object : opened.objects) {
      const auto bytes = std::as_bytes(std::span(object.bytes));
      objects_.push_back(object.is_stored ? kNotFound : items.add_bytes(bytes));
    }
    views_.add(std::move(items), shown_path(location_));
    for (const Opened::IndexFile& index : opened.indexes)
      indexes_.push_back({index.key, integrity::xxh3_128(index.bytes)});
    std::vector<std::byte> all;
    for (const auto& [key, digest] : indexes_) all.insert(all.end(), digest.begin(), digest.end());
    identity_ = to_hex(integrity::xxh3_128(all));
    digests_ = internal::ItemDigests(opened, contents_);
    for (size_t i = 0; i < contents_.chunks.size(); ++i) {
      const auto payload = digests_.payload_offset(i);
      if (payload.has_value()) places_[i].store(*payload);
    }
  }

  std::string_view format_name() const override { return kFormatName; }
  std::string_view generation() const override { return digests_.generation(); }
  std::string_view identity() const override { return identity_; }
  int32_t world_size() const override { return contents_.world_size; }
  int64_t created_unix_ns() const override { return digests_.created_unix_ns(); }
  const std::map<std::string, std::string>& metadata() const override { return contents_.metadata; }
  const plan::Catalog& catalog() const override { return contents_.catalog; }
  const std::vector<FileInfo>& files() const override { return contents_.files; }
  const std::vector<std::string>& notes() const override { return contents_.notes; }
  uint32_t chunk_file(size_t chunk) const override { return contents_.chunks[chunk].file; }
  uint32_t object_file(size_t object) const override { return contents_.objects[object].file; }
  Result<Extent> chunk_extent(size_t chunk) const override;
  Result<Extent> object_extent(size_t object) const override;
  Result<std::unique_ptr<storage::StorageObject>> open_derived() const override;
  bool locates() const override { return true; }
  Status locate(std::span<const StoredItem> items) const override;
  uint64_t digest_block_bytes() const override {
    return digests_.has_any() ? kDigestBlockBytes : 0;
  }
  Status prepare_file(uint32_t file) const override;
  Status check_file(uint32_t file) const override { return prepare_file(file); }
  bool has_checksums() const override { return true; }
  Result<std::optional<uint32_t>> item_checksum(const StoredItem& item) const override;
  Status check_checksums(uint32_t file) const override;
  Status check_manifest() const override;
  Status check_chunk_block(size_t chunk, uint64_t block,
                           std::span<const std::byte> bytes) const override {
    return digests_.check_chunk(contents_, chunk, block, bytes);
  }
  // A value was compared when it was read.
  Status check_object_block(size_t object, uint64_t block,
                            std::span<const std::byte> bytes) const override {
    return objects_[object] == kNotFound ? digests_.check_object(contents_, object, block, bytes)
                                         : Status();
  }
  Status explain_missing(uint32_t file) const override {
    Status replaced = check_manifest();
    if (replaced.code() == StatusCode::kAborted) return replaced;
    return data_loss(fmt::format("file '{}', which the index names, is not there",
                                 escape_text(files()[file].key)))
        .with_detail("file", files()[file].key);
  }
  Result<std::vector<Extent>> padding(uint32_t) const override { return std::vector<Extent>(); }

 private:
  Result<std::unique_ptr<storage::StorageObject>> open_file(uint32_t file) const;
  Status locate_in_file(uint32_t file, std::span<const uint64_t> chunks) const;
  Status take_place(uint64_t chunk, const archive::ArchiveBytes& item,
                    std::span<const std::byte> head) const;
  Status take_transformed(uint64_t chunk, const archive::ArchiveBytes& item) const;
  // Numbers behind that of the derived file: archives of items that are stored through a transform.
  uint32_t unpacked_file(uint64_t chunk) const {
    return derived_file() + 1 + static_cast<uint32_t>(chunk);
  }
  Result<std::shared_ptr<const UnpackedArchives::Bytes>> unpacked(uint64_t chunk) const;
  Status read_checksum(uint64_t chunk) const;
  std::vector<uint64_t> chunks_in(uint32_t file) const;
  Status check_place(const ItemPlace& place) const;
  void take_checksum(uint64_t chunk, const internal::ItemHeads& heads) const;
  Status in_tensor(uint64_t chunk, Status status) const;

  Location location_;
  Contents contents_;
  std::vector<std::pair<std::string, Digest128>> indexes_;
  std::vector<uint64_t> objects_;  // offset in the derived file, or kNotFound: as stored
  std::unique_ptr<std::atomic<uint64_t>[]> places_;
  std::unique_ptr<std::atomic<uint32_t>[]> checksums_;  // 0 = not known yet, or there is none
  mutable internal::DerivedViews views_;
  mutable UnpackedArchives unpacked_;
  mutable Mutex by_file_mutex_;
  mutable std::vector<uint64_t> by_file_ SHW_GUARDED_BY(by_file_mutex_);  // made when wanted
  std::string identity_;
  internal::ItemDigests digests_;
};

Result<std::unique_ptr<storage::StorageObject>> TorchDcpCheckpoint::open_file(uint32_t file) const {
  auto object =
      location_.storage->open(stored_key(location_, files()[file]), storage::OpenOptions{});
  if (object.status().code() == StatusCode::kNotFound) return explain_missing(file);
  return object;
}

Result<std::unique_ptr<storage::StorageObject>> TorchDcpCheckpoint::open_derived() const {
  return views_.open(
      [this](uint32_t file) -> Result<std::unique_ptr<storage::StorageObject>> {
        if (file <= derived_file()) return open_file(file);
        const uint64_t chunk = file - unpacked_file(0);
        return open_unpacked([this, chunk] { return unpacked(chunk); },
                             files()[chunk_file(chunk)].key);
      },
      shown_path(location_));
}

Status TorchDcpCheckpoint::check_place(const ItemPlace& place) const {
  const FileInfo& file = files()[place.file];
  if (place.offset <= file.size_bytes && place.size_bytes <= file.size_bytes - place.offset)
    return {};
  return data_loss(fmt::format("file '{}' has {} bytes, and an item of the index lies in it at {} "
                               "with {} bytes",
                               escape_text(file.key), file.size_bytes, place.offset,
                               place.size_bytes))
      .with_detail("file", file.key)
      .with_detail("offset", fmt::to_string(place.offset));
}

Result<Extent> TorchDcpCheckpoint::object_extent(size_t object) const {
  const uint64_t size = catalog().objects[object].size_bytes;
  if (objects_[object] != kNotFound) return Extent{derived_file(), objects_[object], size};
  const ItemPlace& place = contents_.objects[object];
  SHW_RETURN_IF_ERROR(prepare_file(place.file));
  SHW_RETURN_IF_ERROR(check_place(place));
  return Extent{place.file, place.offset, size};
}

Result<Extent> TorchDcpCheckpoint::chunk_extent(size_t chunk) const {
  if (places_[chunk].load() == kNotFound) {
    const StoredItem item{StoredItem::Kind::kChunk, chunk};
    SHW_RETURN_IF_ERROR(prepare_file(chunk_file(chunk)));
    SHW_RETURN_IF_ERROR(locate({&item, 1}));
  }
  const uint64_t place = places_[chunk].load();
  const uint64_t size = catalog().chunk_bytes(chunk);
  if ((place & kInDerived) != 0) return Extent{derived_file(), place & ~kInDerived, size};
  return Extent{chunk_file(chunk), place & ~kIsRecord, size};
}

Result<std::optional<uint32_t>> TorchDcpCheckpoint::item_checksum(const StoredItem& item) const {
  std::optional<uint32_t> none;
  if (item.kind != StoredItem::Kind::kChunk) return none;
  const uint64_t chunk = item.number;
  const uint64_t place = places_[chunk].load();
  if (place == kNotFound || (place & (kInDerived | kIsRecord)) != kIsRecord) return none;
  if (checksums_[chunk].load() == 0) SHW_RETURN_IF_ERROR(in_tensor(chunk, read_checksum(chunk)));
  const uint32_t crc = checksums_[chunk].load();
  return crc == 0 ? none : std::optional(crc);
}

Status TorchDcpCheckpoint::read_checksum(uint64_t chunk) const {
  const ItemPlace& place = contents_.chunks[chunk];
  const uint64_t bytes = catalog().chunk_bytes(chunk);
  const uint64_t payload = (places_[chunk].load() & ~kIsRecord) - place.offset;
  SHW_ASSIGN_OR_RETURN(const std::unique_ptr<storage::StorageObject> object, open_file(place.file));
  const archive::ArchiveBytes item =
      archive::bytes_of(*object, place.offset, place.size_bytes, files()[place.file].key);
  SHW_ASSIGN_OR_RETURN(const uint32_t crc, archive::crc_of_payload(item, payload, bytes));
  checksums_[chunk].store(crc);
  return object->close();
}

// Those that are archives as they are stored, by their places.
std::vector<uint64_t> TorchDcpCheckpoint::chunks_in(uint32_t file) const {
  const MutexLock lock(by_file_mutex_);
  const auto file_of = [this](uint64_t chunk) { return chunk_file(chunk); };
  if (by_file_.empty()) {
    for (size_t i = 0; i < contents_.chunks.size(); ++i) {
      if (contents_.chunks[i].transform == 0) by_file_.push_back(i);
    }
    std::ranges::sort(by_file_, {}, [&](uint64_t chunk) {
      return std::pair(chunk_file(chunk), contents_.chunks[chunk].offset);
    });
  }
  const auto found = std::ranges::equal_range(by_file_, file, {}, file_of);
  return {found.begin(), found.end()};
}

// Records of all items in the file, but for those that chunks are: whoever reads these compares.
Status TorchDcpCheckpoint::check_checksums(uint32_t file) const {
  SHW_ASSIGN_OR_RETURN(const std::unique_ptr<storage::StorageObject> object, open_file(file));
  const auto check = [&](const ItemPlace& place, std::span<const uint64_t> but_payloads) -> Status {
    SHW_RETURN_IF_ERROR(check_place(place));
    const archive::ArchiveBytes item =
        archive::bytes_of(*object, place.offset, place.size_bytes, files()[file].key);
    if (place.transform == 0) return archive::check_payloads(item, {.but_payloads = but_payloads});
    // Unpacking compares.
    if (!check_transforms(contents_.transforms[place.transform - 1], "", 0).ok()) return {};
    return undo_transform(item, kMostCheckedBytes).status();
  };
  const std::vector<uint64_t> chunks = chunks_in(file);
  SHW_RETURN_IF_ERROR(locate_in_file(file, chunks));
  for (const uint64_t chunk : chunks) {
    const uint64_t place = places_[chunk].load();
    const bool is_record = (place & (kInDerived | kIsRecord)) == kIsRecord;
    const uint64_t payload = (place & ~kIsRecord) - contents_.chunks[chunk].offset;
    SHW_RETURN_IF_ERROR(
        in_tensor(chunk, check(contents_.chunks[chunk], {&payload, is_record ? 1U : 0U})));
  }
  for (const ItemPlace& place : contents_.objects) {
    if (place.file == file) SHW_RETURN_IF_ERROR(check(place, {}));
  }
  return object->close();
}

Status TorchDcpCheckpoint::locate(std::span<const StoredItem> items) const {
  std::map<uint32_t, std::vector<uint64_t>> by_file;
  for (const StoredItem& item : items) {
    if (item.kind == StoredItem::Kind::kChunk && places_[item.number].load() == kNotFound)
      by_file[chunk_file(item.number)].push_back(item.number);
  }
  for (auto& [file, chunks] : by_file) {
    std::ranges::sort(chunks, {}, [&](uint64_t chunk) { return contents_.chunks[chunk].offset; });
    SHW_RETURN_IF_ERROR(locate_in_file(file, chunks));
  }
  return {};
}

Status TorchDcpCheckpoint::locate_in_file(uint32_t file, std::span<const uint64_t> chunks) const {
  std::vector<ItemPlace> places;
  for (const uint64_t chunk : chunks) {
    const ItemPlace& place = contents_.chunks[chunk];
    SHW_RETURN_IF_ERROR(in_tensor(chunk, check_place(place)));
    if (place.transform != 0)
      SHW_RETURN_IF_ERROR(
          in_tensor(chunk, check_transforms(contents_.transforms[place.transform - 1],
                                            files()[file].key, place.offset)));
    places.push_back(place);
  }
  SHW_ASSIGN_OR_RETURN(const std::unique_ptr<storage::StorageObject> object, open_file(file));
  internal::ItemHeads heads(*object, places);
  for (size_t i = 0; i < chunks.size(); ++i) {
    const archive::ArchiveBytes item =
        archive::bytes_of(*object, places[i].offset, places[i].size_bytes, files()[file].key);
    if (places[i].transform != 0) {
      SHW_RETURN_IF_ERROR(in_tensor(chunks[i], take_transformed(chunks[i], item)));
      continue;
    }
    SHW_ASSIGN_OR_RETURN(const std::span<const std::byte> head, heads.at(i));
    SHW_RETURN_IF_ERROR(in_tensor(chunks[i], take_place(chunks[i], item, head)));
    take_checksum(chunks[i], heads);
  }
  return object->close();
}

Status TorchDcpCheckpoint::take_transformed(uint64_t chunk,
                                            const archive::ArchiveBytes& item) const {
  const plan::Catalog& catalog = contents_.catalog;
  const Box box = catalog.chunk_box(chunk);
  const uint64_t bytes = catalog.chunk_bytes(chunk);
  SHW_ASSIGN_OR_RETURN(
      StridedSource source,
      find_transformed_elements(item, most_archive_bytes(bytes),
                                catalog.tensors[catalog.tensor_of(chunk)].dtype, box.sizes));
  source.file = unpacked_file(chunk);
  if (is_packed(source.shape, source.strides)) {
    source.element_bytes = 1;
    source.shape = Dims{static_cast<int64_t>(bytes)};
    source.strides = Dims{1};
  }
  DerivedItems items;
  items.add_strided(std::move(source));
  places_[chunk].store(views_.add(std::move(items), files()[chunk_file(chunk)].key) | kInDerived);
  return {};
}

Result<std::shared_ptr<const UnpackedArchives::Bytes>> TorchDcpCheckpoint::unpacked(
    uint64_t chunk) const {
  return unpacked_.get(chunk, [this, chunk]() -> Result<UnpackedArchives::Bytes> {
    const ItemPlace& place = contents_.chunks[chunk];
    SHW_ASSIGN_OR_RETURN(const std::unique_ptr<storage::StorageObject> object,
                         open_file(place.file));
    auto bytes = undo_transform(
        archive::bytes_of(*object, place.offset, place.size_bytes, files()[place.file].key),
        most_archive_bytes(catalog().chunk_bytes(chunk)));
    if (!bytes.ok()) return in_tensor(chunk, bytes.status());
    return bytes;
  });
}

Status TorchDcpCheckpoint::take_place(uint64_t chunk, const archive::ArchiveBytes& item,
                                      std::span<const std::byte> head) const {
  const plan::Catalog& catalog = contents_.catalog;
  const size_t tensor = catalog.tensor_of(chunk);
  const Box box = catalog.chunk_box(chunk);
  SHW_ASSIGN_OR_RETURN(FoundElements found,
                       find_elements(item, head, catalog.tensors[tensor].dtype, box.sizes));
  StridedSource& source = found.source;
  source.file = chunk_file(chunk);
  source.offset += item.file_offset;
  if (found.crc != 0) checksums_[chunk].store(found.crc);
  if (is_packed(source.shape, source.strides)) {
    places_[chunk].store(source.offset | (found.is_whole_record ? kIsRecord : 0));
    return {};
  }
  if (found.is_whole_record) {
    const uint64_t bytes = catalog.chunk_bytes(chunk);
    SHW_ASSIGN_OR_RETURN(source.crc,
                         archive::crc_of_payload(item, source.offset - item.file_offset, bytes));
  }
  DerivedItems items;
  items.add_strided(std::move(source));
  places_[chunk].store(views_.add(std::move(items), files()[chunk_file(chunk)].key) | kInDerived);
  return {};
}

// Where what follows the record came with the heads of its neighbours.
void TorchDcpCheckpoint::take_checksum(uint64_t chunk, const internal::ItemHeads& heads) const {
  const uint64_t place = places_[chunk].load();
  if (checksums_[chunk].load() != 0 || (place & (kInDerived | kIsRecord)) != kIsRecord) return;
  const uint64_t bytes = catalog().chunk_bytes(chunk);
  const ItemPlace& item = contents_.chunks[chunk];
  const auto behind =
      heads.read_before((place & ~kIsRecord) + bytes, archive::kMostDescriptorBytes);
  if ((place & ~kIsRecord) + bytes + behind.size() > item.offset + item.size_bytes) return;
  if (const auto crc = archive::crc_behind(behind, bytes)) checksums_[chunk].store(*crc);
}

Status TorchDcpCheckpoint::in_tensor(uint64_t chunk, Status status) const {
  if (status.ok()) return status;
  const std::string_view name = catalog().tensor_name(catalog().tensor_of(chunk));
  return std::move(status)
      .with_detail("tensor", name)
      .annotated(fmt::format("find chunk {} of '{}'", box_text(catalog().chunk_box(chunk)),
                             escape_text(name)));
}

Status TorchDcpCheckpoint::prepare_file(uint32_t file) const {
  if (file >= files().size())
    return out_of_range(fmt::format("file {} of {}", file, files().size()));
  const Result<storage::ObjectStat> stat =
      location_.storage->stat(stored_key(location_, files()[file]));
  if (stat.status().code() == StatusCode::kNotFound) return explain_missing(file);
  SHW_RETURN_IF_ERROR(stat.status());
  if (stat->size_bytes == files()[file].size_bytes) return {};
  return aborted(fmt::format("file '{}' was replaced or changed since the checkpoint was opened; "
                             "open it again",
                             escape_text(files()[file].key)))
      .with_detail("file", files()[file].key);
}

Status TorchDcpCheckpoint::check_manifest() const {
  for (const auto& [key, digest] : indexes_) {
    const auto bytes = storage::read_all(*location_.storage,
                                         storage::join_key(location_.prefix, key), kMaxIndexBytes);
    if (bytes.status().code() == StatusCode::kNotFound)
      return data_loss(fmt::format("index '{}' is gone", escape_text(key)))
          .with_detail("file", key);
    SHW_RETURN_IF_ERROR(bytes.status());
    if (integrity::xxh3_128(*bytes) == digest) continue;
    return aborted(fmt::format("index '{}' was replaced while reading; open the checkpoint again",
                               escape_text(key)))
        .with_detail("file", key);
  }
  return {};
}

// What a column of numbers takes in memory.
template <typename Column>
uint64_t column_bytes(const Column& column) {
  return column.size() * sizeof(*column.data());
}

}  // namespace

namespace internal {

std::shared_ptr<const OpenedCheckpoint> make_checkpoint(const Location& location,
                                                        const Opened& opened, Contents contents) {
  return std::make_shared<const TorchDcpCheckpoint>(location, opened, std::move(contents));
}

uint64_t held_bytes(const Opened& opened, const Contents& contents) {
  const plan::Catalog& catalog = contents.catalog;
  uint64_t bytes = column_bytes(catalog.texts.blob()) + column_bytes(catalog.texts.ends()) +
                   column_bytes(catalog.shapes) + column_bytes(catalog.tensors) +
                   column_bytes(catalog.splits) + column_bytes(catalog.grids) +
                   column_bytes(catalog.rank_maps) + column_bytes(catalog.boxes) +
                   column_bytes(catalog.more) + column_bytes(catalog.objects);
  bytes += contents.chunks.size() *
           (sizeof(ItemPlace) + 2 * sizeof(uint64_t) + sizeof(std::atomic<uint64_t>) +
            sizeof(std::atomic<uint32_t>) + sizeof(uint64_t));
  bytes += opened.sidecar.size();
  for (const ByteObject& object : opened.objects) bytes += sizeof(object) + object.bytes.size();
  for (const FileInfo& file : contents.files) bytes += sizeof(file) + file.key.size();
  for (const auto& [key, value] : contents.metadata) bytes += key.size() + value.size();
  return bytes;
}

}  // namespace internal
}  // namespace shardwright::format::torch_dcp

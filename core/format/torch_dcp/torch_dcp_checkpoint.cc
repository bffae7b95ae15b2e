// SPDX-License-Identifier: Apache-2.0
//
// The place of a chunk is one word, found by whoever wants it first: the offset of its elements in
// its file, or, for a view whose elements lie apart, its offset in the derived file. Two threads
// that find the same place write the same word, or use two parts of the derived file.
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/archive/archive_bytes.h"
#include "core/format/torch_dcp/contents_internal.h"
#include "core/format/torch_dcp/derived_views_internal.h"
#include "core/format/torch_dcp/item_heads_internal.h"
#include "core/format/torch_dcp/tensor_item.h"
#include "core/integrity/digest.h"

namespace shardwright::format::torch_dcp {
namespace {

using internal::Contents;
using internal::Opened;

constexpr uint64_t kMaxIndexBytes = uint64_t{1} << 30;
constexpr uint64_t kNotFound = UINT64_MAX;
constexpr uint64_t kInDerived = uint64_t{1} << 63;

class TorchDcpCheckpoint final : public OpenedCheckpoint {
 public:
  TorchDcpCheckpoint(Location location, const Opened& opened, Contents contents)
      : location_(std::move(location)),
        contents_(std::move(contents)),
        places_(std::make_unique<std::atomic<uint64_t>[]>(contents_.chunks.size())) {
    for (size_t i = 0; i < contents_.chunks.size(); ++i) places_[i].store(kNotFound);
    DerivedItems items;
    for (const ByteObject& object : opened.objects) {
      const auto bytes = std::as_bytes(std::span(object.bytes));
      objects_.push_back(object.is_stored ? kNotFound : items.add_bytes(bytes));
    }
    views_.add(std::move(items));
    for (const Opened::IndexFile& index : opened.indexes)
      indexes_.push_back({index.key, integrity::xxh3_128(index.bytes)});
    std::vector<std::byte> all;
    for (const auto& [key, digest] : indexes_) all.insert(all.end(), digest.begin(), digest.end());
    identity_ = to_hex(integrity::xxh3_128(all));
  }

  std::string_view format_name() const override { return kFormatName; }
  std::string_view generation() const override { return ""; }
  std::string_view identity() const override { return identity_; }
  int32_t world_size() const override { return contents_.world_size; }
  int64_t created_unix_ns() const override { return 0; }
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
  uint64_t digest_block_bytes() const override { return 0; }
  Status prepare_file(uint32_t file) const override;
  Status check_file(uint32_t file) const override { return prepare_file(file); }
  Status check_manifest() const override;
  Status check_chunk_block(size_t, uint64_t, std::span<const std::byte>) const override {
    return {};
  }
  Status check_object_block(size_t, uint64_t, std::span<const std::byte>) const override {
    return {};
  }
  Status explain_missing(uint32_t file) const override {
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
  Status check_place(const ItemPlace& place) const;
  Status in_tensor(uint64_t chunk, Status status) const;

  Location location_;
  Contents contents_;
  std::vector<std::pair<std::string, Digest128>> indexes_;
  std::vector<uint64_t> objects_;  // offset in the derived file, or kNotFound: as stored
  std::unique_ptr<std::atomic<uint64_t>[]> places_;
  mutable internal::DerivedViews views_;
  std::string identity_;
};

Result<std::unique_ptr<storage::StorageObject>> TorchDcpCheckpoint::open_file(uint32_t file) const {
  auto object =
      location_.storage->open(stored_key(location_, files()[file]), storage::OpenOptions{});
  if (object.status().code() == StatusCode::kNotFound) return explain_missing(file);
  return object;
}

Result<std::unique_ptr<storage::StorageObject>> TorchDcpCheckpoint::open_derived() const {
  return views_.open([this](uint32_t file) { return open_file(file); }, shown_path(location_));
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
  return Extent{chunk_file(chunk), place, size};
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
    if (place.transform != 0) {
      return in_tensor(
          chunk,
          unimplemented(fmt::format("file '{}': an item is stored through '{}', which is not "
                                    "undone here",
                                    escape_text(files()[file].key),
                                    escape_text(contents_.transforms[place.transform - 1])))
              .with_detail("file", files()[file].key)
              .with_detail("offset", fmt::to_string(place.offset)));
    }
    places.push_back(place);
  }
  SHW_ASSIGN_OR_RETURN(const std::unique_ptr<storage::StorageObject> object, open_file(file));
  internal::ItemHeads heads(*object, places);
  for (size_t i = 0; i < chunks.size(); ++i) {
    const archive::ArchiveBytes item =
        archive::bytes_of(*object, places[i].offset, places[i].size_bytes, files()[file].key);
    SHW_ASSIGN_OR_RETURN(const std::span<const std::byte> head, heads.at(i));
    SHW_RETURN_IF_ERROR(in_tensor(chunks[i], take_place(chunks[i], item, head)));
  }
  return object->close();
}

Status TorchDcpCheckpoint::take_place(uint64_t chunk, const archive::ArchiveBytes& item,
                                      std::span<const std::byte> head) const {
  const plan::Catalog& catalog = contents_.catalog;
  const size_t tensor = catalog.tensor_of(chunk);
  const Box box = catalog.chunk_box(chunk);
  SHW_ASSIGN_OR_RETURN(StridedSource source,
                       find_elements(item, head, catalog.tensors[tensor].dtype, box.sizes));
  source.file = chunk_file(chunk);
  source.offset += item.file_offset;
  if (is_packed(source.shape, source.strides)) {
    places_[chunk].store(source.offset);
    return {};
  }
  DerivedItems items;
  items.add_strided(std::move(source));
  places_[chunk].store(views_.add(std::move(items)) | kInDerived);
  return {};
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

Result<std::shared_ptr<const OpenedCheckpoint>> opened_from(const Location& location,
                                                            const Opened& opened, DcpIndex index) {
  SHW_ASSIGN_OR_RETURN(Contents contents, internal::contents_of(std::move(index), opened));
  return std::shared_ptr<const OpenedCheckpoint>(
      std::make_shared<const TorchDcpCheckpoint>(location, opened, std::move(contents)));
}

// r of __r.metadata, or nullopt.
std::optional<int32_t> rank_of_index(std::string_view name) {
  constexpr std::string_view kSuffix = ".metadata";
  if (!name.starts_with("__") || !name.ends_with(kSuffix)) return std::nullopt;
  const std::string_view digits = name.substr(2, name.size() - 2 - kSuffix.size());
  int32_t rank = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
  return whole && rank >= 0 ? std::optional(rank) : std::nullopt;
}

// The indexes that count: the one of all ranks where there is one.
std::vector<std::string> index_keys(std::span<const std::string> names) {
  if (std::ranges::find(names, kIndexName) != names.end()) return {std::string(kIndexName)};
  std::map<int32_t, std::string> by_rank;
  for (const std::string& name : names) {
    if (const auto rank = rank_of_index(name)) by_rank.emplace(*rank, name);
  }
  std::vector<std::string> keys;
  for (auto& [rank, name] : by_rank) keys.push_back(std::move(name));
  return keys;
}

// Sizes of the files, as one listing says them.
Result<std::vector<uint64_t>> sizes_of(const Location& location,
                                       const std::vector<std::string>& files) {
  std::map<std::string, uint64_t, std::less<>> seen;
  const std::string prefix = location.prefix.empty() ? "" : location.prefix + "/";
  SHW_RETURN_IF_ERROR(location.storage->list(prefix, storage::kDelimiter, [&](const auto& entry) {
    seen.emplace(entry.key.substr(prefix.size()), entry.stat.size_bytes);
    return Status();
  }));
  std::vector<uint64_t> sizes;
  sizes.reserve(files.size());
  for (const std::string& file : files) {
    const auto found = seen.find(file);
    if (found != seen.end()) {
      sizes.push_back(found->second);
      continue;
    }
    const auto stat = location.storage->stat(storage::join_key(location.prefix, file));
    if (stat.status().code() != StatusCode::kNotFound) SHW_RETURN_IF_ERROR(stat.status());
    sizes.push_back(stat.ok() ? stat->size_bytes : Opened::kMissing);
  }
  return sizes;
}

}  // namespace

Result<std::shared_ptr<const OpenedCheckpoint>> open_directory(const Location& location,
                                                               std::span<const std::string> names,
                                                               std::vector<std::byte>* bytes) {
  Opened opened;
  for (const std::string& key : index_keys(names)) {
    SHW_ASSIGN_OR_RETURN(
        std::vector<std::byte> index,
        storage::read_all(*location.storage, storage::join_key(location.prefix, key),
                          kMaxIndexBytes));
    opened.indexes.push_back({key, std::move(index)});
  }
  SHW_ASSIGN_OR_RETURN(DcpIndex index, internal::index_of(opened));
  SHW_ASSIGN_OR_RETURN(opened.file_bytes, sizes_of(location, index.files));
  std::vector<FileInfo> files(index.files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    files[i].key = index.files[i];
    files[i].size_bytes = opened.file_bytes[i] == Opened::kMissing ? 0 : opened.file_bytes[i];
  }
  opened.objects = read_objects(location, index, files, &index.notes);
  if (bytes != nullptr) *bytes = internal::encode_opened(opened);
  return opened_from(location, opened, std::move(index));
}

Result<std::shared_ptr<const OpenedCheckpoint>> open_shared(const Location& location,
                                                            std::span<const std::byte> bytes) {
  SHW_ASSIGN_OR_RETURN(const Opened opened, internal::decode_opened(bytes));
  SHW_ASSIGN_OR_RETURN(DcpIndex index, internal::index_of(opened));
  return opened_from(location, opened, std::move(index));
}

}  // namespace shardwright::format::torch_dcp

// SPDX-License-Identifier: Apache-2.0
//
// Opening a native checkpoint. The manifest is read once into private memory and proved; a rank
// file is looked at when it is first needed: size, header, trailer, index, each against the
// manifest. Only successes are remembered, so a file that could not be read for a while is tried
// again; verification reads again what is remembered. Immutable but for that memory, which is
// guarded; any thread.
#include "core/format/native/native_checkpoint.h"
#include "core/base/generation_id.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/format/native/file_items_internal.h"
#include "core/format/native/native_format.h"
#include "core/format/native/native_saving.h"
#include "core/format/native/rank_file.h"

namespace shardwright::format::native {
namespace {

using internal::FileItems;

constexpr uint64_t kMaxManifestBytes = kMaxFlatBufferBytes + sizeof(integrity::Digest128);

// A file's checked index: what is needed of each of its items. The place of an item among them is
// its slot.
struct FileIndex {
  std::vector<uint64_t> items;                // ascending, chunks of the manifest before objects
  std::vector<uint64_t> positions;            // per slot
  std::vector<uint64_t> digest_begins;        // per slot
  std::vector<integrity::Digest128> digests;  // of all blocks
  std::vector<Extent> gaps;                   // bytes that nothing names

  // Of an item that lies in the file.
  size_t slot_of(uint64_t item) const {
    return static_cast<size_t>(std::ranges::lower_bound(items, item) - items.begin());
  }
};

// What is remembered of a file. Written once under its mutex, then only read.
struct PreparedFile {
  std::mutex mutex;
  std::atomic<bool> ready = false;
  FileIndex index;
};

// One chunk or object with all that identifies it.
struct ItemView {
  integrity::ChunkIdentity identity;
  std::string_view path;
  EntryKind kind = EntryKind::kReplicated;
  std::optional<Box> box;
  uint64_t size_bytes = 0;
};

ItemView view_item(const plan::Catalog& catalog, uint64_t item, std::string_view generation) {
  ItemView view;
  view.identity.generation = generation;
  if (item < catalog.chunk_count()) {
    const size_t tensor = catalog.tensor_of(item);
    const plan::TensorRecord& record = catalog.tensors[tensor];
    view.identity.name = catalog.tensor_name(tensor);
    view.identity.content = dtype_name(record.dtype);
    view.identity.shape = catalog.shape(tensor);
    view.identity.rank = record.rank;
    view.path = catalog.texts.at(record.path);
    view.kind = record.kind;
    view.box = catalog.chunk_box(item);
    view.size_bytes = catalog.chunk_bytes(item);
  } else {
    const plan::ObjectRecord& record = catalog.objects[item - catalog.chunk_count()];
    view.identity.name = catalog.texts.at(record.name);
    view.identity.content = catalog.texts.at(record.content_type);
    view.identity.rank = record.rank;
    view.path = catalog.texts.at(record.path);
    view.kind = record.kind;
    view.size_bytes = record.size_bytes;
  }
  return view;
}

bool is_same(const ItemView& a, const ItemView& b) {
  return a.identity.name == b.identity.name && a.identity.content == b.identity.content &&
         a.identity.rank == b.identity.rank &&
         std::ranges::equal(a.identity.shape, b.identity.shape) && a.path == b.path &&
         a.kind == b.kind && a.box == b.box && a.size_bytes == b.size_bytes;
}

class NativeCheckpoint final : public OpenedCheckpoint {
 public:
  NativeCheckpoint(Location location, Manifest manifest, const integrity::Digest128& digest,
                   FileItems items)
      : location_(std::move(location)),
        manifest_(std::move(manifest)),
        manifest_digest_(digest),
        items_(std::move(items)),
        prepared_(manifest_.files.size()) {
    files_.reserve(manifest_.files.size());
    for (const ManifestFile& file : manifest_.files) {
      files_.push_back(
          {rank_file_key(manifest_.generation, file.rank), file.size_bytes, file.rank});
    }
  }

  std::string_view format_name() const override { return kFormatName; }
  std::string_view generation() const override { return manifest_.generation; }
  int32_t world_size() const override { return manifest_.world_size; }
  int64_t created_unix_ns() const override { return manifest_.created_unix_ns; }
  const std::map<std::string, std::string>& metadata() const override { return manifest_.metadata; }
  const plan::Catalog& catalog() const override { return manifest_.catalog; }
  const std::vector<FileInfo>& files() const override { return files_; }
  uint32_t chunk_file(size_t chunk) const override { return items_.file(catalog(), chunk); }
  uint32_t object_file(size_t object) const override {
    return items_.file(catalog(), item_of(object));
  }
  Result<Extent> chunk_extent(size_t chunk) const override {
    return extent_of(chunk, catalog().chunk_bytes(chunk));
  }
  Result<Extent> object_extent(size_t object) const override {
    return extent_of(item_of(object), catalog().objects[object].size_bytes);
  }
  uint64_t digest_block_bytes() const override { return manifest_.digests ? kDigestBlockBytes : 0; }
  Status prepare_file(uint32_t file) const override;
  Status check_file(uint32_t file) const override;
  Status check_manifest() const override;
  Status check_chunk_block(size_t chunk, uint64_t block,
                           std::span<const std::byte> bytes) const override {
    return check_block(chunk, catalog().chunk_bytes(chunk), block, bytes);
  }
  Status check_object_block(size_t object, uint64_t block,
                            std::span<const std::byte> bytes) const override {
    return check_block(item_of(object), catalog().objects[object].size_bytes, block, bytes);
  }
  Status explain_missing(uint32_t file) const override;
  Result<std::vector<Extent>> padding(uint32_t file) const override;

 private:
  Status named(uint32_t file, Status status) const;
  Status replaced(std::string_view current_generation) const;
  uint64_t item_of(size_t object) const { return catalog().chunk_count() + object; }
  Result<Extent> extent_of(uint64_t item, uint64_t size_bytes) const;
  Result<FileIndex> checked_index(uint32_t file) const;
  Result<FileIndex> read_file(uint32_t file) const;
  Result<FileIndex> check_tail(uint32_t file, std::span<const std::byte> tail) const;
  Result<FileIndex> check_same(uint32_t file, RankIndex index) const;
  Status check_block(uint64_t item, uint64_t size_bytes, uint64_t block,
                     std::span<const std::byte> bytes) const;
  Result<std::vector<Extent>> find_gaps(uint32_t file, const RankIndex& index) const;
  Status describe_mismatch(uint64_t item, const Extent& block, const integrity::Digest128& expected,
                           const integrity::Digest128& found) const;

  Location location_;
  Manifest manifest_;
  integrity::Digest128 manifest_digest_;  // that the stored manifest carries of itself
  FileItems items_;
  std::vector<FileInfo> files_;
  mutable std::deque<PreparedFile> prepared_;  // one per file, each guarded by its mutex
};

Status NativeCheckpoint::named(uint32_t file, Status status) const {
  if (status.ok()) return status;
  const bool has_file = !status.detail("file").empty();
  Status annotated = std::move(status).annotated(fmt::format("checking {}", files_[file].key));
  return has_file ? annotated : std::move(annotated).with_detail("file", files_[file].key);
}

Status NativeCheckpoint::replaced(std::string_view current_generation) const {
  return aborted(fmt::format("the checkpoint was replaced while reading: generation {} was opened, "
                             "{} is current; open it again",
                             manifest_.generation, current_generation))
      .with_detail("generation", current_generation);
}

Status NativeCheckpoint::explain_missing(uint32_t file) const {
  const Result<CurrentCheckpoint> current = read_current(location_);
  if (current.ok() && current->exists && !current->damaged &&
      current->generation != manifest_.generation) {
    return replaced(current->generation).with_detail("file", files_[file].key);
  }
  return data_loss(
             fmt::format("file {} is missing although the manifest names it", files_[file].key))
      .with_detail("file", files_[file].key)
      .with_detail("generation", manifest_.generation);
}

Status NativeCheckpoint::prepare_file(uint32_t file) const {
  if (file >= files_.size()) return out_of_range(fmt::format("file {} of {}", file, files_.size()));
  PreparedFile& prepared = prepared_[file];
  if (prepared.ready.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(prepared.mutex);
  if (prepared.ready.load(std::memory_order_relaxed)) return {};
  SHW_ASSIGN_OR_RETURN(prepared.index, checked_index(file));
  prepared.ready.store(true, std::memory_order_release);
  return {};
}

Status NativeCheckpoint::check_file(uint32_t file) const {
  if (file >= files_.size()) return out_of_range(fmt::format("file {} of {}", file, files_.size()));
  SHW_ASSIGN_OR_RETURN(FileIndex index, checked_index(file));
  PreparedFile& prepared = prepared_[file];
  const std::lock_guard lock(prepared.mutex);
  if (prepared.ready.load(std::memory_order_relaxed)) return {};  // the same: one index digest
  prepared.index = std::move(index);
  prepared.ready.store(true, std::memory_order_release);
  return {};
}

Result<FileIndex> NativeCheckpoint::checked_index(uint32_t file) const {
  Result<FileIndex> index = read_file(file);
  if (index.ok()) return index;
  if (index.status().code() == StatusCode::kNotFound) return explain_missing(file);
  return named(file, index.status());
}

Result<Extent> NativeCheckpoint::extent_of(uint64_t item, uint64_t size_bytes) const {
  const uint32_t file = items_.file(catalog(), item);
  SHW_RETURN_IF_ERROR(prepare_file(file));
  const FileIndex& index = prepared_[file].index;
  return Extent{file, index.positions[index.slot_of(item)], size_bytes};
}

Result<FileIndex> NativeCheckpoint::read_file(uint32_t file) const {
  const ManifestFile& expected = manifest_.files[file];
  SHW_ASSIGN_OR_RETURN(
      const std::unique_ptr<storage::StorageObject> object,
      location_.storage->open(storage::join_key(location_.prefix, files_[file].key),
                              storage::OpenOptions{}));
  SHW_ASSIGN_OR_RETURN(const storage::ObjectStat stat, object->stat());
  if (stat.size_bytes != expected.size_bytes) {
    return data_loss(fmt::format("the file has {} bytes, the manifest names {}", stat.size_bytes,
                                 expected.size_bytes))
        .with_detail("expected", fmt::to_string(expected.size_bytes))
        .with_detail("found", fmt::to_string(stat.size_bytes));
  }
  std::vector<std::byte> header(kFileHeaderBytes);
  SHW_RETURN_IF_ERROR(object->read_at(0, header));
  SHW_RETURN_IF_ERROR(check_file_header(header, manifest_.generation, expected.rank));
  const uint64_t tail_bytes = expected.size_bytes - expected.index_position;
  if (tail_bytes > kWriteBlockBytes) {  // before memory is taken for an index that may not be there
    std::array<std::byte, kTrailerBytes> trailer{};
    SHW_RETURN_IF_ERROR(object->read_at(expected.size_bytes - kTrailerBytes, trailer));
    SHW_RETURN_IF_ERROR(decode_trailer(trailer).status());
  }
  std::vector<std::byte> tail(static_cast<size_t>(tail_bytes));
  SHW_RETURN_IF_ERROR(object->read_at(expected.index_position, tail));
  SHW_ASSIGN_OR_RETURN(FileIndex index, check_tail(file, tail));
  SHW_RETURN_IF_ERROR(object->close());
  return index;
}

// tail: the file's bytes from the index to the end, as the manifest says.
Result<FileIndex> NativeCheckpoint::check_tail(uint32_t file,
                                               std::span<const std::byte> tail) const {
  const ManifestFile& expected = manifest_.files[file];
  SHW_ASSIGN_OR_RETURN(const Trailer trailer, decode_trailer(tail.last(kTrailerBytes)));
  if (trailer.generation != manifest_.generation || trailer.rank != expected.rank ||
      trailer.world_size != manifest_.world_size || trailer.file_bytes != expected.size_bytes ||
      trailer.index_position != expected.index_position ||
      trailer.index_bytes != expected.index_bytes) {
    return data_loss(fmt::format(
        "the trailer is that of rank {} of {} in generation {} with {} bytes: the file was "
        "swapped or is of another save",
        trailer.rank, trailer.world_size, trailer.generation, trailer.file_bytes));
  }
  const auto index_bytes = tail.first(static_cast<size_t>(expected.index_bytes));
  const integrity::Digest128 found = integrity::xxh3_128(index_bytes);
  if (found != expected.index_digest || found != trailer.index_digest) {
    return data_loss("the digest of the file's index does not hold")
        .with_detail("offset", fmt::to_string(expected.index_position))
        .with_detail("length", fmt::to_string(expected.index_bytes))
        .with_detail("expected", to_hex(expected.index_digest))
        .with_detail("found", to_hex(found));
  }
  SHW_ASSIGN_OR_RETURN(RankIndex index, decode_index(index_bytes));
  if (index.generation != manifest_.generation || index.rank != expected.rank ||
      index.world_size != manifest_.world_size || index.digests != manifest_.digests) {
    return data_loss(fmt::format("the index is that of rank {} of {} in generation {}", index.rank,
                                 index.world_size, index.generation));
  }
  return check_same(file, std::move(index));
}

// The index names exactly what the manifest says of this file, in its order, and nothing of it lies
// behind the extents.
Result<FileIndex> NativeCheckpoint::check_same(uint32_t file, RankIndex index) const {
  std::vector<uint64_t> expected = items_.of(catalog(), file);
  if (index.positions.size() != expected.size()) {
    return data_loss(fmt::format("the index names {} chunks and objects, the manifest {}",
                                 index.positions.size(), expected.size()));
  }
  FileIndex checked;
  checked.digest_begins.reserve(expected.size());
  uint64_t digests = 0;
  for (size_t slot = 0; slot < expected.size(); ++slot) {
    const ItemView wanted = view_item(catalog(), expected[slot], manifest_.generation);
    if (!is_same(wanted, view_item(index.catalog, slot, manifest_.generation))) {
      return data_loss(fmt::format("the index has something else than '{}' at offset {}",
                                   escape_text(wanted.identity.name, 128), index.positions[slot]))
          .with_detail("tensor", wanted.identity.name)
          .with_detail("offset", fmt::to_string(index.positions[slot]));
    }
    checked.digest_begins.push_back(digests);
    digests += integrity::block_count(wanted.size_bytes);
  }
  SHW_ASSIGN_OR_RETURN(checked.gaps, find_gaps(file, index));
  checked.items = std::move(expected);
  checked.positions = std::move(index.positions);
  checked.digests = std::move(index.block_digests);
  return checked;
}

// Bytes of the file that nothing names. DATA_LOSS for what reaches into its index.
Result<std::vector<Extent>> NativeCheckpoint::find_gaps(uint32_t file,
                                                        const RankIndex& index) const {
  const ManifestFile& info = manifest_.files[file];
  std::vector<Extent> gaps;
  uint64_t end = kFileHeaderBytes;
  const auto add_gap = [&](uint64_t next) {
    if (next > end) gaps.push_back({file, end, next - end});
  };
  for (const StoredItem& item : items_by_position(index)) {
    if (item.position + item.size_bytes > info.index_position) {
      return data_loss(fmt::format("{} of {} bytes at offset {} reaches beyond the extents",
                                   internal::item_text(index.catalog, item.item), item.size_bytes,
                                   item.position))
          .with_detail("offset", fmt::to_string(item.position))
          .with_detail("length", fmt::to_string(item.size_bytes));
    }
    if (item.size_bytes == 0) continue;
    add_gap(item.position);
    end = item.position + item.size_bytes;
  }
  add_gap(info.index_position);
  end = info.index_position + info.index_bytes;
  add_gap(info.size_bytes - kTrailerBytes);
  return gaps;
}

Status NativeCheckpoint::check_block(uint64_t item, uint64_t size_bytes, uint64_t block,
                                     std::span<const std::byte> bytes) const {
  if (!manifest_.digests) return {};
  const uint32_t file = items_.file(catalog(), item);
  const PreparedFile& prepared = prepared_[file];
  if (!prepared.ready.load(std::memory_order_acquire)) {
    return internal_error(
        fmt::format("a block of {} was checked before the file was prepared", files_[file].key));
  }
  const uint64_t offset = block * kDigestBlockBytes;
  if (block >= integrity::block_count(size_bytes) ||
      bytes.size() != std::min(kDigestBlockBytes, size_bytes - offset)) {
    return internal_error(fmt::format("block {} with {} bytes is none of the {} bytes in {}", block,
                                      bytes.size(), size_bytes, files_[file].key));
  }
  ItemView view = view_item(catalog(), item, manifest_.generation);
  if (view.box.has_value()) view.identity.box = &*view.box;
  const integrity::Digest128 found = integrity::block_digest(
      integrity::xxh3_128(bytes), integrity::chunk_key(view.identity), block, bytes.size());
  const FileIndex& index = prepared.index;
  const size_t slot = index.slot_of(item);
  const integrity::Digest128& expected = index.digests[index.digest_begins[slot] + block];
  if (found == expected) return {};
  return describe_mismatch(item, {file, index.positions[slot] + offset, bytes.size()}, expected,
                           found);
}

Status NativeCheckpoint::describe_mismatch(uint64_t item, const Extent& block,
                                           const integrity::Digest128& expected,
                                           const integrity::Digest128& found) const {
  const ItemView view = view_item(catalog(), item, manifest_.generation);
  const std::string box = view.box.has_value() ? box_text(*view.box) : std::string();
  return data_loss(
             fmt::format("{} '{}'{}{} is damaged: the digest of bytes {} to {} of {} does not hold",
                         view.box.has_value() ? "tensor" : "object",
                         escape_text(view.identity.name, 256), box.empty() ? "" : " ", box,
                         block.offset, block.offset + block.size_bytes, files_[block.file].key))
      .with_detail("tensor", view.identity.name)
      .with_detail("box", box)
      .with_detail("file", files_[block.file].key)
      .with_detail("offset", fmt::to_string(block.offset))
      .with_detail("length", fmt::to_string(block.size_bytes))
      .with_detail("expected", to_hex(expected))
      .with_detail("found", to_hex(found));
}

Result<std::vector<Extent>> NativeCheckpoint::padding(uint32_t file) const {
  SHW_RETURN_IF_ERROR(prepare_file(file));
  return prepared_[file].index.gaps;
}

std::string manifest_key(const Location& location) {
  return storage::join_key(location.prefix, kManifestName);
}

// What the name promises and the bytes do not keep is damage.
Status as_damage_of(std::string_view key, Status status) {
  if (status.ok()) return status;
  if (status.code() == StatusCode::kInvalidArgument)
    status = data_loss(std::string(status.message()));
  return std::move(status)
      .annotated(fmt::format("reading {}", escape_text(key)))
      .with_detail("file", key);
}

Result<Manifest> decode_named_manifest(std::span<const std::byte> bytes, std::string_view name,
                                       Proof proof = Proof::kWhole) {
  Result<Manifest> manifest = decode_manifest(bytes, proof);
  if (manifest.ok()) return manifest;
  return as_damage_of(name, manifest.status());
}

// The digest that a manifest carries of itself; it decoded.
integrity::Digest128 own_digest(std::span<const std::byte> manifest) {
  integrity::Digest128 digest;
  const auto stored = manifest.last(digest.size());
  std::copy(stored.begin(), stored.end(), digest.begin());
  return digest;
}

// Whether the length of an open manifest may be believed: of a large one the ends are looked at
// before memory is taken for it, because a file may say any length and hold nothing. What is wrong
// with it is written to *damage; the status is that of reading.
Status look_at_manifest(storage::StorageObject& object, uint64_t size_bytes, std::string_view name,
                        Status* damage) {
  if (size_bytes > kMaxManifestBytes) {
    *damage = data_loss(fmt::format("{} has {} bytes, a manifest at most {}", escape_text(name),
                                    size_bytes, kMaxManifestBytes))
                  .with_detail("file", name)
                  .with_detail("limit", fmt::to_string(kMaxManifestBytes));
    return {};
  }
  if (size_bytes <= kWriteBlockBytes) return {};
  std::array<std::byte, kManifestHeadBytes> head{};
  std::array<std::byte, kManifestTailBytes> tail{};
  SHW_RETURN_IF_ERROR(object.read_at(0, head));
  SHW_RETURN_IF_ERROR(object.read_at(size_bytes - tail.size(), tail));
  *damage = as_damage_of(name, check_manifest_ends(head, tail, size_bytes));
  return {};
}

// A manifest that was read; a status that is not OK says what is wrong with it.
struct NamedManifest {
  Status status;
  Manifest manifest;
  integrity::Digest128 digest{};
  std::vector<std::byte> bytes;
  std::string version;
};

// NOT_FOUND of this alone says that there is none: later calls look at what is open.
Result<std::unique_ptr<storage::StorageObject>> open_manifest(const Location& location) {
  return location.storage->open(manifest_key(location), storage::OpenOptions{});
}

// The failure is that of reading. name: what messages call it.
Result<NamedManifest> read_named_manifest(storage::StorageObject& object, std::string_view name) {
  SHW_ASSIGN_OR_RETURN(const storage::ObjectStat stat, object.stat());
  NamedManifest named;
  named.version = stat.version;
  SHW_RETURN_IF_ERROR(look_at_manifest(object, stat.size_bytes, name, &named.status));
  if (named.status.ok()) {
    std::vector<std::byte> bytes(static_cast<size_t>(stat.size_bytes));
    SHW_RETURN_IF_ERROR(object.read_at(0, bytes));
    Result<Manifest> manifest = decode_named_manifest(bytes, name);
    named.status = manifest.status();
    if (manifest.ok()) {
      named.manifest = std::move(*manifest);
      named.digest = own_digest(bytes);
      named.bytes = std::move(bytes);
    }
  }
  SHW_RETURN_IF_ERROR(object.close());
  return named;
}

Status NativeCheckpoint::check_manifest() const {
  const Result<std::unique_ptr<storage::StorageObject>> object = open_manifest(location_);
  if (object.status().code() == StatusCode::kNotFound) {
    return data_loss(fmt::format("{} is gone", kManifestName)).with_detail("file", kManifestName);
  }
  SHW_RETURN_IF_ERROR(object.status());
  SHW_ASSIGN_OR_RETURN(const NamedManifest named, read_named_manifest(**object, kManifestName));
  SHW_RETURN_IF_ERROR(named.status);
  if (named.digest == manifest_digest_) return {};
  const Manifest& current = named.manifest;
  if (current.generation == manifest_.generation) {
    return data_loss(fmt::format("{} names the generation that was opened, but is another manifest",
                                 kManifestName))
        .with_detail("file", kManifestName);
  }
  const bool kept = std::ranges::find(current.kept_generations, manifest_.generation) !=
                    current.kept_generations.end();
  return kept ? Status() : replaced(current.generation);
}

Result<std::shared_ptr<const OpenedCheckpoint>> opened_from(const Location& location,
                                                            Manifest manifest,
                                                            const integrity::Digest128& digest) {
  SHW_ASSIGN_OR_RETURN(FileItems items, FileItems::create(manifest.catalog, manifest.files));
  return std::shared_ptr<const OpenedCheckpoint>(std::make_shared<const NativeCheckpoint>(
      location, std::move(manifest), digest, std::move(items)));
}

class NativeFormat final : public Format {
 public:
  std::string_view name() const override { return kFormatName; }
  std::span<const std::string_view> markers() const override { return {&kManifestName, 1}; }
  bool recognises(const Sight&) const override { return false; }  // by nothing but its marker

  Result<std::shared_ptr<const OpenedCheckpoint>> open(
      const Sight& sight, std::vector<std::byte>* metadata) const override {
    const Location& location = sight.location;
    SHW_ASSIGN_OR_RETURN(const std::unique_ptr<storage::StorageObject> object,
                         open_manifest(location));
    SHW_ASSIGN_OR_RETURN(NamedManifest named, read_named_manifest(*object, manifest_key(location)));
    SHW_RETURN_IF_ERROR(named.status);
    if (metadata != nullptr) *metadata = std::move(named.bytes);
    return opened_from(location, std::move(named.manifest), named.digest);
  }

  Result<std::shared_ptr<const OpenedCheckpoint>> open_shared(
      const Location& location, std::span<const std::byte> metadata) const override {
    SHW_ASSIGN_OR_RETURN(Manifest manifest, decode_named_manifest(metadata, manifest_key(location),
                                                                  Proof::kOfAnother));
    return opened_from(location, std::move(manifest), own_digest(metadata));
  }

  const FormatWriter* writer() const override { return &native_writer(); }
};

}  // namespace

std::unique_ptr<const Format> make_format() {
  return std::make_unique<NativeFormat>();
}

Result<CurrentCheckpoint> read_current(const Location& location) {
  const Result<std::unique_ptr<storage::StorageObject>> object = open_manifest(location);
  if (object.status().code() == StatusCode::kNotFound) return CurrentCheckpoint{};
  SHW_RETURN_IF_ERROR(object.status());
  SHW_ASSIGN_OR_RETURN(const NamedManifest named,
                       read_named_manifest(**object, manifest_key(location)));
  CurrentCheckpoint current;
  current.exists = true;
  current.version = named.version;
  if (named.status.ok()) {
    current.generation = named.manifest.generation;
    current.kept_generations = named.manifest.kept_generations;
  } else if (named.status.code() == StatusCode::kDataLoss) {
    current.damaged = true;
  } else {
    return named.status;
  }
  return current;
}

Result<std::vector<GenerationInfo>> list_generations(const Location& location) {
  SHW_ASSIGN_OR_RETURN(const CurrentCheckpoint current, read_current(location));
  if (current.damaged) {
    return data_loss(fmt::format("{} is damaged, so it is unknown which generation it names",
                                 escape_text(manifest_key(location))))
        .with_detail("file", manifest_key(location));
  }
  std::map<std::string, GenerationInfo, std::less<>> found;
  const std::string prefix = location.prefix.empty() ? "" : location.prefix + "/";
  const std::string temporary = fmt::format("{}.", kManifestName);
  SHW_RETURN_IF_ERROR(
      location.storage->list(prefix, storage::kNoDelimiter, [&](const storage::ListEntry& entry) {
        const std::string_view rest = std::string_view(entry.key).substr(prefix.size());
        std::string_view generation = rest.substr(0, rest.find('/'));
        if (rest.starts_with(temporary)) generation = rest.substr(temporary.size());
        if (!is_generation_id(generation)) return Status();
        GenerationInfo& info = found[std::string(generation)];
        info.modified_ns = std::max(info.modified_ns, entry.stat.modified_ns);
        info.size_bytes += entry.stat.size_bytes;
        info.keys.push_back(entry.key);
        return Status();
      }));
  std::vector<GenerationInfo> generations;
  for (auto& [generation, info] : found) {
    info.generation = generation;
    info.named = current.names(generation);
    generations.push_back(std::move(info));
  }
  return generations;
}

}  // namespace shardwright::format::native

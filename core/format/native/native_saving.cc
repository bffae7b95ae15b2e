// SPDX-License-Identifier: Apache-2.0
//
// A rank writes one file, from its header to its trailer, and reports the trailer's numbers; the
// coordinator finds them in storage again and puts them into the manifest. Where items lie is each
// rank's own affair and stands in its file's index.
#include "core/format/native/native_saving.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/format/native/file_layout.h"
#include "core/format/native/manifest.h"
#include "core/format/native/native_checkpoint.h"
#include "core/format/native/native_format.h"
#include "core/format/native/rank_file.h"

namespace shardwright::format::native {
namespace {

constexpr uint64_t kBytesPerRecord = 192;  // of manifest or index for one chunk, estimated

StoredChunk stored_chunk(const RankContents& contents, const plan::WriteItem& item) {
  const TensorRef entry = contents.state.tensors()[item.entry];
  const plan::TensorRecord& record = contents.local.description.catalog.tensors[item.entry];
  StoredChunk chunk;
  chunk.tensor = {
      entry.name,        entry.path, record.dtype, record.kind, contents.owner(record.rank),
      entry.global_shape};
  chunk.box = entry.pieces[item.piece].box;
  return chunk;
}

StoredObject stored_object(const RankContents& contents, const plan::WriteItem& item) {
  const ObjectEntry& entry = contents.state.objects()[item.entry];
  const plan::ObjectRecord& record = contents.local.description.catalog.objects[item.entry];
  StoredObject object;
  object.record.kind = record.kind;
  object.record.rank = contents.owner(record.rank);
  object.record.size_bytes = item.size_bytes;
  object.name = entry.name;
  object.path = entry.path;
  object.content_type = entry.content_type;
  return object;
}

// From what the rank knows itself; the coordinator's merged plan gives the same bytes.
Result<std::vector<std::byte>> encode_rank_index(const RankContents& contents,
                                                 const FileLayout& layout,
                                                 std::span<const Digest128> digests) {
  std::vector<StoredChunk> chunks;
  std::vector<StoredObject> objects;
  chunks.reserve(contents.list.items.size());
  for (const plan::WriteItem& item : contents.list.items) {
    if (item.piece == plan::kObjectPiece) {
      objects.push_back(stored_object(contents, item));
    } else {
      chunks.push_back(stored_chunk(contents, item));
    }
  }
  RankIndex index;
  index.generation = contents.list.generation;
  index.rank = contents.list.rank;
  index.world_size = contents.list.world_size;
  index.digests = contents.digests;
  SHW_ASSIGN_OR_RETURN(index.catalog, index_catalog(chunks, objects));
  index.positions.resize(contents.list.items.size());
  for (const PlacedItem& placed : layout.items) index.positions[placed.item] = placed.position;
  index.block_digests.assign(digests.begin(), digests.end());
  return encode_index(index);
}

class NativeGeneration final : public GenerationWriter {
 public:
  NativeGeneration(const Location& location, const plan::GlobalSavePlan& plan,
                   SaveSettings settings, const CurrentCheckpoint& replaced)
      : location_(location),
        plan_(plan),
        settings_(std::move(settings)),
        manifest_key_(storage::join_key(location.prefix, kManifestName)) {
    if (!replaced.exists || replaced.damaged) return;
    named_before_.push_back(replaced.generation);
    named_before_.insert(named_before_.end(), replaced.kept_generations.begin(),
                         replaced.kept_generations.end());
  }

  Result<uint64_t> planned_bytes() const override;
  Status make(std::string_view generation, Existing existing) override;
  const StoredParts& parts() const override { return parts_; }
  Status check_written(const plan::WriteResult& result) const override;
  Status encode(std::span<const plan::WriteResult> results, int64_t created_unix_ns) override;
  Result<std::unique_ptr<storage::StorageObject>> open_commit() override;
  uint64_t file_count() const override { return file_count_; }
  uint64_t file_bytes() const override { return file_bytes_; }
  std::vector<StoredParts> replaced_parts() const override;

 private:
  // Of those that were named before: as many as the option keeps beside the new one.
  size_t kept_count() const {
    return std::min(named_before_.size(), static_cast<size_t>(settings_.keep_generations - 1));
  }
  Status check_file(const std::string& key, const plan::WriteResult& result) const;
  Status check_manifest(const Manifest& meant) const;

  const Location location_;
  const plan::GlobalSavePlan& plan_;
  const SaveSettings settings_;
  const std::string manifest_key_;
  std::vector<std::string> named_before_;  // newest first
  StoredParts parts_;
  std::vector<std::byte> manifest_;
  uint64_t file_count_ = 0;
  uint64_t file_bytes_ = 0;
};

Result<uint64_t> NativeGeneration::planned_bytes() const {
  uint64_t planned = 0;
  for (size_t rank = 0; rank < plan_.rank_count(); ++rank) {
    const uint64_t items = plan_.writes.item_counts[rank];
    const uint64_t bytes = plan_.writes.bytes[rank];
    if (items == 0) continue;
    // Small chunks lie close together; the few large ones begin at multiples of more.
    const uint64_t metadata = (2 * kBytesPerRecord + kSlabAlignmentBytes) * items +
                              kWriteBlockBytes / 16 + bytes / kDigestBlockBytes * sizeof(Digest128);
    if (!checked_add(planned, bytes, &planned) || !checked_add(planned, metadata, &planned))
      return invalid_argument("the planned bytes of all ranks cannot be counted");
  }
  return planned;
}

Status NativeGeneration::make(std::string_view generation, Existing existing) {
  parts_.generation = generation;
  parts_.prefix = storage::join_key(location_.prefix, generation);  // from here on none is needed
  const Status made = location_.storage->create_prefix(parts_.prefix);
  if (made.code() == StatusCode::kAlreadyExists && existing == Existing::kGoOn)
    return storage::remove_in_flight(*location_.storage, manifest_key_, generation);
  if (made.code() == StatusCode::kAlreadyExists) parts_ = {};  // it is another one's
  return made;
}

Status NativeGeneration::check_written(const plan::WriteResult& result) const {
  if (result.has_file != (plan_.writes.item_counts[static_cast<size_t>(result.rank)] != 0)) {
    return failed_precondition(fmt::format(
        "rank {} reports {} file, its plan has {} items", result.rank, result.has_file ? "a" : "no",
        plan_.writes.item_counts[static_cast<size_t>(result.rank)]));
  }
  if (!result.has_file) return {};
  const std::string key =
      storage::join_key(location_.prefix, rank_file_key(parts_.generation, result.rank));
  Status checked = check_file(key, result);
  return checked.ok() ? checked : std::move(checked).with_detail("file", key);
}

// The trailer in storage is the one that the rank reported.
Status NativeGeneration::check_file(const std::string& key, const plan::WriteResult& result) const {
  SHW_ASSIGN_OR_RETURN(const std::unique_ptr<storage::StorageObject> object,
                       location_.storage->open(key, storage::OpenOptions{}));
  SHW_ASSIGN_OR_RETURN(const storage::ObjectStat stat, object->stat());
  if (stat.size_bytes != result.file_bytes || stat.size_bytes < kTrailerBytes) {
    return data_loss(fmt::format("{} has {} bytes, rank {} wrote {}", escape_text(key),
                                 stat.size_bytes, result.rank, result.file_bytes))
        .with_detail("expected", fmt::to_string(result.file_bytes))
        .with_detail("found", fmt::to_string(stat.size_bytes));
  }
  std::vector<std::byte> bytes(kTrailerBytes);
  SHW_RETURN_IF_ERROR(object->read_at(stat.size_bytes - kTrailerBytes, bytes));
  SHW_ASSIGN_OR_RETURN(const Trailer trailer, decode_trailer(bytes));
  if (trailer.generation != result.generation || trailer.rank != result.rank ||
      std::cmp_not_equal(trailer.world_size, plan_.rank_count()) ||
      trailer.index_position != result.index_position ||
      trailer.index_bytes != result.index_bytes || trailer.index_digest != result.index_digest ||
      trailer.file_bytes != result.file_bytes) {
    return data_loss(fmt::format("the trailer of {} is not the one that rank {} wrote",
                                 escape_text(key), result.rank));
  }
  return object->close();
}

Status NativeGeneration::encode(std::span<const plan::WriteResult> results,
                                int64_t created_unix_ns) {
  Manifest manifest;
  manifest.generation = parts_.generation;
  manifest.kept_generations.assign(
      named_before_.begin(), named_before_.begin() + static_cast<std::ptrdiff_t>(kept_count()));
  manifest.world_size = static_cast<int32_t>(plan_.rank_count());
  manifest.created_unix_ns = created_unix_ns;
  manifest.writer = settings_.writer;
  manifest.digests = settings_.digests;
  manifest.metadata = settings_.metadata;
  for (const plan::WriteResult& result : results) {
    if (!result.has_file) continue;
    manifest.files.push_back({result.rank, result.file_bytes, result.index_position,
                              result.index_bytes, result.index_digest});
    file_bytes_ += result.file_bytes;
  }
  file_count_ = manifest.files.size();
  manifest.catalog = plan_.catalog;
  SHW_ASSIGN_OR_RETURN(manifest_, encode_manifest(manifest));
  return check_manifest(manifest);
}

// What will be written decodes to what was meant.
Status NativeGeneration::check_manifest(const Manifest& meant) const {
  const Result<Manifest> again = decode_manifest(manifest_);
  if (!again.ok()) {
    return internal_error(
        fmt::format("the new manifest does not decode: {}", again.status().to_string()));
  }
  const bool same =
      again->generation == meant.generation && again->world_size == meant.world_size &&
      again->files.size() == meant.files.size() && again->metadata == meant.metadata &&
      again->catalog.tensors.size() == meant.catalog.tensors.size() &&
      again->catalog.chunk_count() == meant.catalog.chunk_count() &&
      again->catalog.objects.size() == meant.catalog.objects.size();
  return same ? Status() : internal_error("the new manifest decodes to something else");
}

Result<std::unique_ptr<storage::StorageObject>> NativeGeneration::open_commit() {
  storage::OpenOptions options;
  options.mode = storage::OpenMode::kCreate;
  options.file_mode = settings_.file_mode;
  options.durable = settings_.durable;
  options.temporary_suffix = parts_.generation;
  return storage::write_uncommitted(*location_.storage, manifest_key_, manifest_,
                                    std::move(options));
}

std::vector<StoredParts> NativeGeneration::replaced_parts() const {
  std::vector<StoredParts> replaced;
  for (size_t i = kept_count(); i < named_before_.size(); ++i) {
    if (named_before_[i] == parts_.generation) continue;
    replaced.push_back(
        {named_before_[i], storage::join_key(location_.prefix, named_before_[i]), {}});
  }
  return replaced;
}

class NativeWriter final : public FormatWriter {
 public:
  std::string_view name() const override { return kFormatName; }
  bool keeps_digests() const override { return true; }
  std::string commit_key(const Location& location) const override {
    return storage::join_key(location.prefix, kManifestName);
  }
  std::string journal_key(const Location& location, std::string_view generation) const override {
    return storage::join_key(storage::join_key(location.prefix, generation), kJournalName);
  }
  std::string fence_key(const Location& location) const override {
    return storage::join_key(location.prefix, kLockName);
  }
  Result<CurrentCheckpoint> read_current(const Location& location) const override {
    return native::read_current(location);
  }
  Result<std::vector<GenerationInfo>> list_generations(const Location& location) const override {
    return native::list_generations(location);
  }
  Result<std::unique_ptr<GenerationWriter>> begin(
      const Location& location, const plan::GlobalSavePlan& plan, const State&,
      SaveSettings settings, const CurrentCheckpoint& replaced) const override {
    return std::unique_ptr<GenerationWriter>(
        std::make_unique<NativeGeneration>(location, plan, std::move(settings), replaced));
  }
  Result<std::vector<FileLayout>> lay_out(const Location& location,
                                          const RankContents& contents) const override;
  Result<std::vector<std::byte>> encode_tail(const RankContents& contents, const FileLayout& layout,
                                             uint64_t position, std::span<const Digest128> digests,
                                             plan::WriteResult* result) const override;
};

Result<std::vector<FileLayout>> NativeWriter::lay_out(const Location& location,
                                                      const RankContents& contents) const {
  const plan::WriteList& list = contents.list;
  SHW_ASSIGN_OR_RETURN(FileLayout layout, native::lay_out(list.items));
  layout.key = storage::join_key(location.prefix, rank_file_key(list.generation, list.rank));
  layout.head = encode_file_header(list.generation, list.rank, list.world_size);
  layout.tail_bytes = list.items.size() * kBytesPerRecord + kWriteBlockBytes;
  if (contents.digests)
    layout.tail_bytes += layout.data_bytes / kDigestBlockBytes * sizeof(Digest128);
  layout.names_prefix = storage::join_key(location.prefix, list.generation);
  std::vector<FileLayout> files;
  files.push_back(std::move(layout));
  return files;
}

Result<std::vector<std::byte>> NativeWriter::encode_tail(const RankContents& contents,
                                                         const FileLayout& layout,
                                                         uint64_t position,
                                                         std::span<const Digest128> digests,
                                                         plan::WriteResult* result) const {
  SHW_ASSIGN_OR_RETURN(std::vector<std::byte> tail, encode_rank_index(contents, layout, digests));
  Trailer trailer;
  trailer.generation = contents.list.generation;
  trailer.rank = contents.list.rank;
  trailer.world_size = contents.list.world_size;
  trailer.index_position = position;
  trailer.index_bytes = tail.size();
  trailer.index_digest = integrity::xxh3_128(tail);
  trailer.file_bytes = position + tail.size() + kTrailerBytes;
  const std::vector<std::byte> end = encode_trailer(trailer);
  tail.insert(tail.end(), end.begin(), end.end());
  result->has_file = true;
  result->file_bytes = trailer.file_bytes;
  result->index_position = trailer.index_position;
  result->index_bytes = trailer.index_bytes;
  result->index_digest = trailer.index_digest;
  return tail;
}

}  // namespace

const FormatWriter& native_writer() {
  static const NativeWriter kWriter;
  return kWriter;
}

}  // namespace shardwright::format::native

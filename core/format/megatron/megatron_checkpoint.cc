// SPDX-License-Identifier: Apache-2.0
//
//   shared = journal, marker, index, common: each its length (8 bytes, little-endian) and its
//            bytes; no bytes of journal or common = there is none
//
// The parts keep their numbers: files, chunks and objects of the second come behind those of the
// first. Of the derived file each part has a range of kDerivedRange bytes.
#include "core/format/megatron/megatron_checkpoint.h"

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/megatron/listed_digests.h"
#include "core/format/megatron/marker_file.h"
#include "core/format/megatron/megatron_format.h"
#include "core/format/megatron/publication.h"
#include "core/format/megatron/unflattened.h"
#include "core/format/megatron/unsharded_state.h"
#include "core/format/megatron/zarr_checkpoint.h"
#include "core/format/read_only_object.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"
#include "core/format/torch_save/torch_save_checkpoint.h"
#include "core/integrity/digest.h"

namespace shardwright::format::megatron {
namespace {

constexpr uint64_t kDerivedRange = uint64_t{1} << 60;
constexpr int kMaxRounds = 8;  // of opening what is replaced meanwhile

struct Part {
  std::shared_ptr<const OpenedCheckpoint> checkpoint;  // co-owned with what keeps openings
  uint64_t first_chunk = 0;
  uint64_t first_object = 0;
  uint32_t first_file = 0;
};

// The derived files of the parts, one behind the other.
class DerivedOfParts final : public ReadOnlyObject {
 public:
  DerivedOfParts(std::vector<std::unique_ptr<storage::StorageObject>> parts, std::string name)
      : ReadOnlyObject(std::move(name)), parts_(std::move(parts)) {}

  Status read_at(uint64_t offset, std::span<std::byte> data) override {
    const uint64_t part = offset / kDerivedRange;
    if (part >= parts_.size())
      return out_of_range(fmt::format("{} bytes at {} of {}, where nothing is", data.size(), offset,
                                      escape_text(name())));
    return parts_[part]->read_at(offset % kDerivedRange, data);
  }
  Result<storage::ObjectStat> stat() override {
    return unimplemented("a derived file that grows while it is read has no size");
  }

 private:
  std::vector<std::unique_ptr<storage::StorageObject>> parts_;
};

// Where the parts lie: under their own names, or those that a journal says.
struct Names {
  std::optional<Publication> publication;
  std::string index{torch_dcp::kIndexName};
  std::string common{kCommonName};
};

Result<Names> names_of(std::span<const std::byte> journal) {
  Names names;
  if (journal.empty()) return names;
  SHW_ASSIGN_OR_RETURN(names.publication, decode_publication(journal));
  names.index = pending_name(torch_dcp::kIndexName, names.publication->generation);
  names.common = pending_name(kCommonName, names.publication->generation);
  return names;
}

Location common_location(const Location& location, const Names& names) {
  const std::string below = fmt::format("/{}", names.common);
  Location common = location;
  common.prefix = storage::join_key(location.prefix, names.common);
  common.display = shown_path(location) + below;
  if (!common.path.empty()) common.path += below;
  return common;
}

class MegatronCheckpoint final : public OpenedCheckpoint {
 public:
  // journal: empty = it was opened without one.
  MegatronCheckpoint(Location location, std::span<const std::byte> marker,
                     std::span<const std::byte> journal)
      : location_(std::move(location)),
        marker_(integrity::xxh3_128(marker)),
        journal_(journal.begin(), journal.end()) {}

  // The first part is the index of torch DCP, the second common.pt.
  Status add_part(std::shared_ptr<const OpenedCheckpoint> checkpoint);

  std::string_view format_name() const override { return kFormatName; }
  std::string_view generation() const override { return data().generation(); }
  std::string_view identity() const override { return identity_; }
  int32_t world_size() const override { return data().world_size(); }
  int64_t created_unix_ns() const override { return data().created_unix_ns(); }
  const std::map<std::string, std::string>& metadata() const override { return metadata_; }
  const plan::Catalog& catalog() const override { return catalog_; }
  const std::vector<FileInfo>& files() const override { return files_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  uint32_t chunk_file(size_t chunk) const override {
    const Part& part = part_of_chunk(chunk);
    return part.first_file + part.checkpoint->chunk_file(chunk - part.first_chunk);
  }
  uint32_t object_file(size_t object) const override {
    const Part& part = part_of_object(object);
    return part.first_file + part.checkpoint->object_file(object - part.first_object);
  }
  Result<Extent> chunk_extent(size_t chunk) const override {
    const Part& part = part_of_chunk(chunk);
    return here(part, part.checkpoint->chunk_extent(chunk - part.first_chunk));
  }
  Result<Extent> object_extent(size_t object) const override {
    const Part& part = part_of_object(object);
    return here(part, part.checkpoint->object_extent(object - part.first_object));
  }
  Result<std::unique_ptr<storage::StorageObject>> open_derived() const override;
  bool locates() const override { return true; }
  Status locate(std::span<const StoredItem> items) const override;
  uint64_t digest_block_bytes() const override { return data().digest_block_bytes(); }
  Status prepare_file(uint32_t file) const override {
    return ask_part(file, &OpenedCheckpoint::prepare_file);
  }
  Status check_file(uint32_t file) const override {
    return ask_part(file, &OpenedCheckpoint::check_file);
  }
  bool has_checksums() const override { return true; }
  Result<std::optional<uint32_t>> item_checksum(const StoredItem& item) const override {
    const bool is_chunk = item.kind == StoredItem::Kind::kChunk;
    const Part& part = is_chunk ? part_of_chunk(item.number) : part_of_object(item.number);
    const uint64_t first = is_chunk ? part.first_chunk : part.first_object;
    return part.checkpoint->item_checksum({item.kind, item.number - first});
  }
  Status check_checksums(uint32_t file) const override {
    return ask_part(file, &OpenedCheckpoint::check_checksums);
  }
  Result<std::vector<Status>> check_listed_files() const override;
  Status check_manifest() const override;
  Status check_chunk_block(size_t chunk, uint64_t block,
                           std::span<const std::byte> bytes) const override {
    const Part& part = part_of_chunk(chunk);
    return part.checkpoint->check_chunk_block(chunk - part.first_chunk, block, bytes);
  }
  Status check_object_block(size_t object, uint64_t block,
                            std::span<const std::byte> bytes) const override {
    const Part& part = part_of_object(object);
    return part.checkpoint->check_object_block(object - part.first_object, block, bytes);
  }
  Status explain_missing(uint32_t file) const override {
    Status replaced = check_manifest();
    if (replaced.code() == StatusCode::kAborted) return replaced;
    return ask_part(file, &OpenedCheckpoint::explain_missing);
  }
  Result<std::vector<Extent>> padding(uint32_t) const override { return std::vector<Extent>(); }

 private:
  const OpenedCheckpoint& data() const { return *parts_.front().checkpoint; }
  const Part& part_of_chunk(uint64_t chunk) const {
    return parts_.size() > 1 && chunk >= parts_[1].first_chunk ? parts_[1] : parts_[0];
  }
  const Part& part_of_object(uint64_t object) const {
    return parts_.size() > 1 && object >= parts_[1].first_object ? parts_[1] : parts_[0];
  }
  // What the part says that has the file.
  Status ask_part(uint32_t file, Status (OpenedCheckpoint::*ask)(uint32_t) const) const {
    if (file >= files_.size())
      return out_of_range(fmt::format("file {} of {}", file, files_.size()));
    const Part& part = parts_.size() > 1 && file >= parts_[1].first_file ? parts_[1] : parts_[0];
    return (*part.checkpoint.*ask)(file - part.first_file);
  }
  Result<Extent> here(const Part& part, Result<Extent> extent) const;
  Status add_common(const plan::Catalog& common);

  Location location_;
  Digest128 marker_;
  std::vector<std::byte> journal_;
  std::vector<Part> parts_;
  plan::Catalog catalog_;
  std::vector<FileInfo> files_;
  std::map<std::string, std::string> metadata_;
  std::vector<std::string> notes_;
  std::string identity_;
};

// Key and path of an entry of common.pt.
std::string common_name(std::string_view name) {
  if (name.empty()) return std::string(kCommonKey);  // a value that is no container
  return fmt::format("{}.{}", kCommonKey, name);
}

std::string common_path(std::string_view path) {
  if (path.size() <= 2) return fmt::format("[\"{}\"]", kCommonKey);
  return fmt::format("[\"{}\",{}", kCommonKey, path.substr(1));
}

Status MegatronCheckpoint::add_common(const plan::Catalog& common) {
  plan::CatalogBuilder builder(&catalog_, kMaxDescribedObjectBytes);
  for (size_t i = 0; i < common.tensors.size(); ++i) {
    const plan::TensorRecord& record = common.tensors[i];
    const std::string name = common_name(common.tensor_name(i));
    const std::string path = common_path(common.texts.at(record.path));
    plan::CatalogBuilder::Tensor tensor;
    tensor.name = name;
    tensor.path = path;
    tensor.dtype = record.dtype;
    tensor.shape = common.shape(i);
    std::vector<plan::CatalogBuilder::Chunk> chunks;
    chunks.reserve(static_cast<size_t>(record.chunk_count));
    for (uint64_t k = 0; k < record.chunk_count; ++k)
      chunks.push_back({common.chunk_box(record.chunk_begin + k), 0});
    SHW_RETURN_IF_ERROR(builder.add_tensor(tensor, chunks));
  }
  for (size_t i = 0; i < common.objects.size(); ++i) {
    const plan::ObjectRecord& record = common.objects[i];
    SHW_RETURN_IF_ERROR(builder.add_object(record, common_name(common.object_name(i)),
                                           common_path(common.texts.at(record.path)),
                                           common.texts.at(record.content_type)));
  }
  return plan::check_catalog(catalog_);
}

Status MegatronCheckpoint::add_part(std::shared_ptr<const OpenedCheckpoint> checkpoint) {
  const bool is_data = parts_.empty();
  const std::string prefix = is_data ? "" : fmt::format("{}.", kCommonKey);
  parts_.push_back({checkpoint, catalog_.chunk_count(), catalog_.objects.size(),
                    static_cast<uint32_t>(files_.size())});
  if (is_data) {
    catalog_ = checkpoint->catalog();
  } else {
    const Status added = add_common(checkpoint->catalog());
    if (!added.ok())
      return data_loss(fmt::format("file '{}': {}", kCommonName, added.message()))
          .with_detail("file", kCommonName);
  }
  for (FileInfo file : checkpoint->files()) {
    file.is_location = false;
    files_.push_back(std::move(file));
  }
  for (const auto& [key, value] : checkpoint->metadata()) metadata_[prefix + key] = value;
  for (const std::string& note : checkpoint->notes()) notes_.push_back(note);
  std::vector<std::byte> all(marker_.begin(), marker_.end());
  for (const Part& part : parts_) {
    const auto identity = std::as_bytes(std::span(part.checkpoint->identity()));
    all.insert(all.end(), identity.begin(), identity.end());
  }
  identity_ = to_hex(integrity::xxh3_128(all));
  return {};
}

Result<Extent> MegatronCheckpoint::here(const Part& part, Result<Extent> extent) const {
  if (!extent.ok()) return extent;
  if (extent->file != part.checkpoint->derived_file())
    return Extent{part.first_file + extent->file, extent->offset, extent->size_bytes};
  const auto number = static_cast<uint64_t>(&part - parts_.data());
  return Extent{derived_file(), number * kDerivedRange + extent->offset, extent->size_bytes};
}

Result<std::unique_ptr<storage::StorageObject>> MegatronCheckpoint::open_derived() const {
  std::vector<std::unique_ptr<storage::StorageObject>> opened;
  for (const Part& part : parts_) {
    SHW_ASSIGN_OR_RETURN(auto object, part.checkpoint->open_derived());
    opened.push_back(std::move(object));
  }
  return std::unique_ptr<storage::StorageObject>(
      std::make_unique<DerivedOfParts>(std::move(opened), shown_path(location_)));
}

// Places of common.pt are known since it was opened.
Status MegatronCheckpoint::locate(std::span<const StoredItem> items) const {
  if (parts_.size() == 1) return data().locate(items);
  std::vector<StoredItem> of_data;
  for (const StoredItem& item : items) {
    const bool is_chunk = item.kind == StoredItem::Kind::kChunk;
    const uint64_t end = is_chunk ? parts_[1].first_chunk : parts_[1].first_object;
    if (item.number < end) of_data.push_back(item);
  }
  return data().locate(of_data);
}

// Beside a journal that is followed lies what it puts in place, and what it takes away.
Result<std::vector<Status>> MegatronCheckpoint::check_listed_files() const {
  if (journal_.empty()) return compare_listed(location_);
  SHW_ASSIGN_OR_RETURN(const Names names, names_of(journal_));
  if (!names.publication->has_integrity) return std::vector<Status>();
  return compare_listed(location_, {{std::string(kIntegrityName),
                                     pending_name(kIntegrityName, names.publication->generation)},
                                    {std::string(torch_dcp::kIndexName), names.index},
                                    {std::string(kCommonName), names.common},
                                    {std::string(kMarkerName), ""}});
}

Status MegatronCheckpoint::check_manifest() const {
  SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> journal, read_journal(location_));
  if (journal != journal_)
    return aborted(
               "another checkpoint was put in place while reading, or this one was; open it "
               "again")
        .with_detail("file", kJournalName);
  if (!journal_.empty()) {
    for (const Part& part : parts_) SHW_RETURN_IF_ERROR(part.checkpoint->check_manifest());
    return {};
  }
  const auto bytes = storage::read_all(
      *location_.storage, storage::join_key(location_.prefix, kMarkerName), kMaxMarkerBytes);
  if (bytes.status().code() == StatusCode::kNotFound)
    return data_loss(fmt::format("file '{}' is gone", kMarkerName))
        .with_detail("file", kMarkerName);
  SHW_RETURN_IF_ERROR(bytes.status());
  if (integrity::xxh3_128(*bytes) != marker_)
    return aborted(fmt::format("file '{}' was replaced while reading; open the checkpoint again",
                               kMarkerName))
        .with_detail("file", kMarkerName);
  for (const Part& part : parts_) SHW_RETURN_IF_ERROR(part.checkpoint->check_manifest());
  return {};
}

using Sections = std::array<std::vector<std::byte>, 4>;  // journal, marker, index, common

std::vector<std::byte> encode_sections(const Sections& sections) {
  std::vector<std::byte> out;
  for (const std::vector<std::byte>& section : sections) {
    const uint64_t size = section.size();
    const auto number = std::as_bytes(std::span(&size, 1));
    out.insert(out.end(), number.begin(), number.end());
    out.insert(out.end(), section.begin(), section.end());
  }
  return out;
}

Result<Sections> decode_sections(std::span<const std::byte> bytes) {
  Sections sections;
  for (std::vector<std::byte>& section : sections) {
    uint64_t size = 0;
    if (bytes.size() < sizeof(size)) return data_loss("what another rank read is cut short");
    std::memcpy(&size, bytes.data(), sizeof(size));
    bytes = bytes.subspan(sizeof(size));
    if (size > bytes.size()) return data_loss("what another rank read is cut short");
    section.assign(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    bytes = bytes.subspan(static_cast<size_t>(size));
  }
  if (!bytes.empty()) return data_loss("what another rank read has bytes behind its end");
  return sections;
}

Result<std::vector<std::byte>> read_marker(const Location& location) {
  auto bytes = storage::read_all(*location.storage, storage::join_key(location.prefix, kMarkerName),
                                 kMaxMarkerBytes);
  if (bytes.status().code() != StatusCode::kResourceExhausted) return bytes;
  return data_loss(fmt::format("file '{}' has more than {} bytes, and is no metadata of Megatron",
                               kMarkerName, kMaxMarkerBytes))
      .with_detail("file", kMarkerName);
}

Result<bool> is_there(const Location& location, std::string_view name) {
  const Status found = location.storage->stat(storage::join_key(location.prefix, name)).status();
  if (found.ok() || found.code() == StatusCode::kNotFound) return found.ok();
  return found;
}

Status not_there(std::string_view name, std::string_view why) {
  return data_loss(fmt::format("file '{}' is not there, and {}", name, why))
      .with_detail("file", name)
      .with_detail("hint", "copy the directory again: names with a dot in front belong to it");
}

// Whether common.pt belongs to the checkpoint; one that metadata.json says nothing of may be left
// of an older save where the common state is among the data.
Result<bool> wants_common(const Location& location, const Names& names, const MarkerFile& marker,
                          const plan::Catalog& data) {
  if (names.publication.has_value() && !marker.has_common_file) return false;
  SHW_ASSIGN_OR_RETURN(const bool there, is_there(location, names.common));
  if (marker.has_common_file && !there)
    return not_there(names.common,
                     fmt::format("{} says that it holds the common state", kMarkerName));
  if (marker.has_common_file || !there) return there;
  for (size_t i = 0; i < data.objects.size(); ++i) {
    if (data.object_name(i).starts_with("common_state/shard_")) return false;
  }
  return true;
}

// What says which checkpoint lies there: compared before and after the rest was read.
struct Signs {
  std::vector<std::byte> journal;
  bool has_marker = false;
  storage::ObjectStat marker;

  bool same_as(const Signs& other) const {
    return journal == other.journal && has_marker == other.has_marker &&
           marker.size_bytes == other.marker.size_bytes && marker.version == other.marker.version &&
           marker.modified_ns == other.marker.modified_ns;
  }
};

Result<Signs> look_at_signs(const Location& location) {
  Signs signs;
  SHW_ASSIGN_OR_RETURN(signs.journal, read_journal(location));
  const auto marker = location.storage->stat(storage::join_key(location.prefix, kMarkerName));
  if (!marker.ok() && marker.status().code() != StatusCode::kNotFound) return marker.status();
  signs.has_marker = marker.ok();
  if (marker.ok()) signs.marker = *marker;
  return signs;
}

struct Opening {
  const Location& location;
  torch_dcp::KeptOpenings* kept;
  std::vector<std::byte>* bytes;
  bool to_convert = false;
};

// What the index says. index_bytes: receives what others open it with, or null.
Result<std::shared_ptr<const OpenedCheckpoint>> open_index(const Opening& opening,
                                                           const Names& names,
                                                           std::vector<std::byte>* index_bytes) {
  SHW_ASSIGN_OR_RETURN(const bool has_index, is_there(opening.location, names.index));
  if (!has_index)
    return not_there(
        names.index,
        fmt::format("{} is", names.publication.has_value() ? kJournalName : kMarkerName));
  SHW_ASSIGN_OR_RETURN(auto data, torch_dcp::open_indexes(opening.location, {&names.index, 1},
                                                          opening.kept, index_bytes));
  return unflattened(opening.location, std::move(data));
}

// What the journal names, or else metadata.json.
Result<std::shared_ptr<const OpenedCheckpoint>> open_once(const Opening& opening,
                                                          const Signs& signs) {
  const Location& location = opening.location;
  Sections sections;
  auto& [journal_bytes, marker_bytes, index_bytes, common_bytes] = sections;
  journal_bytes = signs.journal;
  SHW_ASSIGN_OR_RETURN(const Names names, names_of(journal_bytes));
  if (names.publication.has_value()) {
    const auto text = std::as_bytes(std::span(marker_text({names.publication->has_common_file})));
    marker_bytes.assign(text.begin(), text.end());
  } else {
    SHW_ASSIGN_OR_RETURN(marker_bytes, read_marker(location));
  }
  SHW_ASSIGN_OR_RETURN(const MarkerFile marker, decode_marker(marker_bytes));
  if (!opening.to_convert) SHW_RETURN_IF_ERROR(check_readable(marker));
  const bool travels = opening.bytes != nullptr;
  SHW_ASSIGN_OR_RETURN(auto data,
                       marker.backend == Backend::kZarr
                           ? open_zarr(location)
                           : open_index(opening, names, travels ? &index_bytes : nullptr));
  SHW_ASSIGN_OR_RETURN(const bool has_common,
                       wants_common(location, names, marker, data->catalog()));
  auto checkpoint = std::make_shared<MegatronCheckpoint>(location, marker_bytes, journal_bytes);
  SHW_RETURN_IF_ERROR(checkpoint->add_part(std::move(data)));
  if (has_common) {
    SHW_ASSIGN_OR_RETURN(auto common, torch_save::open_file(common_location(location, names),
                                                            travels ? &common_bytes : nullptr));
    SHW_RETURN_IF_ERROR(checkpoint->add_part(std::move(common)));
  }
  if (travels) *opening.bytes = encode_sections(sections);
  return std::shared_ptr<const OpenedCheckpoint>(std::move(checkpoint));
}

// A save may put a checkpoint in place meanwhile: what was read before it and after it would be a
// mixture of two.
Result<std::shared_ptr<const OpenedCheckpoint>> open_steadily(const Opening& opening) {
  SHW_ASSIGN_OR_RETURN(Signs signs, look_at_signs(opening.location));
  for (int round = 0; round < kMaxRounds; ++round) {
    auto opened = open_once(opening, signs);
    SHW_ASSIGN_OR_RETURN(Signs again, look_at_signs(opening.location));
    if (again.same_as(signs)) return opened;
    signs = std::move(again);
  }
  return aborted(fmt::format("'{}' was replaced again and again while it was opened",
                             escape_text(shown_path(opening.location))))
      .with_detail("file", kMarkerName);
}

}  // namespace

Result<std::shared_ptr<const OpenedCheckpoint>> open_directory(const Location& location,
                                                               torch_dcp::KeptOpenings* kept,
                                                               std::vector<std::byte>* bytes) {
  return open_steadily({location, kept, bytes});
}

Result<std::shared_ptr<const OpenedCheckpoint>> open_to_convert(const Location& location,
                                                                torch_dcp::KeptOpenings* kept) {
  return open_steadily({location, kept, nullptr, /*to_convert=*/true});
}

Result<std::shared_ptr<const OpenedCheckpoint>> open_shared(const Location& location,
                                                            std::span<const std::byte> bytes) {
  SHW_ASSIGN_OR_RETURN(const Sections sections, decode_sections(bytes));
  const auto& [journal_bytes, marker_bytes, index_bytes, common_bytes] = sections;
  SHW_ASSIGN_OR_RETURN(const Names names, names_of(journal_bytes));
  SHW_ASSIGN_OR_RETURN(const MarkerFile marker, decode_marker(marker_bytes));
  SHW_RETURN_IF_ERROR(check_readable(marker));
  auto checkpoint = std::make_shared<MegatronCheckpoint>(location, marker_bytes, journal_bytes);
  SHW_ASSIGN_OR_RETURN(auto data, torch_dcp::open_shared(location, index_bytes));
  SHW_ASSIGN_OR_RETURN(data, unflattened(location, std::move(data)));
  SHW_RETURN_IF_ERROR(checkpoint->add_part(std::move(data)));
  if (!common_bytes.empty()) {
    SHW_ASSIGN_OR_RETURN(auto common,
                         torch_save::open_shared(common_location(location, names), common_bytes));
    SHW_RETURN_IF_ERROR(checkpoint->add_part(std::move(common)));
  }
  return std::shared_ptr<const OpenedCheckpoint>(std::move(checkpoint));
}

}  // namespace shardwright::format::megatron

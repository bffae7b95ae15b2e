// SPDX-License-Identifier: Apache-2.0
#include "core/format/megatron/unflattened.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/format/megatron/flat_boxes.h"
#include "core/integrity/crc32.h"
#include "core/layout/flat_range.h"
#include "core/plan/catalog.h"

namespace shardwright::format::megatron {
namespace {

constexpr std::string_view kAttribute = "mcore_data";
constexpr std::string_view kShape = "nd_reformulated_orig_global_shape";
constexpr size_t kMaxDims = 64;
constexpr size_t kSumBytes = size_t{1} << 20;

using Shapes = std::map<std::string, Dims, std::less<>>;
using Json = nlohmann::json;

Status no_attribute(std::string_view why) {
  return data_loss(fmt::format("attribute '{}' of the index {}", kAttribute, why))
      .with_detail("file", ".metadata");
}

// A list or tuple of sizes.
std::optional<Dims> shape_in(const Json& value) {
  const Json* list = &value;
  if (list->is_object() && list->size() == 1 && list->contains("$tuple"))
    list = &list->at("$tuple");
  if (!list->is_array() || list->size() > kMaxDims) return std::nullopt;
  Dims shape(list->size(), 0);
  for (size_t d = 0; d < list->size(); ++d) {
    if (!list->at(d).is_number_integer()) return std::nullopt;
    shape[d] = list->at(d).get<int64_t>();
  }
  return shape;
}

Result<Shapes> shapes_in(std::string_view text) {
  const Json attribute = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!attribute.is_object()) return no_attribute("is no mapping");
  Shapes shapes;
  for (const auto& [name, facts] : attribute.items()) {
    if (!facts.is_object() || !facts.contains(kShape)) continue;
    auto shape = shape_in(facts.at(kShape));
    if (!shape.has_value())
      return no_attribute(fmt::format("has no shape for '{}'", escape_text(name, 256)));
    shapes.emplace(name, std::move(*shape));
  }
  return shapes;
}

// Where a chunk lies: part of one of the stored chunks.
struct Piece {
  uint64_t chunk = 0;
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;
  bool is_whole = true;
};

struct Contents {
  plan::Catalog catalog;
  std::vector<Piece> pieces;  // by chunk of the catalog
  std::vector<uint64_t> cut;  // stored chunks of which there are several
};

class Unflattener {
 public:
  Unflattener(const plan::Catalog& stored, const Shapes& shapes)
      : stored_(stored),
        shapes_(shapes),
        most_(kFreeFlatBoxes + kFlatBoxesPerChunk * stored.chunk_count()) {}

  Result<Contents> run() {
    plan::CatalogBuilder builder(&contents_.catalog, kMaxDescribedObjectBytes);
    for (size_t t = 0; t < stored_.tensors.size(); ++t) {
      const Dims* const shape = shape_of(t);
      std::vector<plan::CatalogBuilder::Chunk> chunks;
      Status taken = shape == nullptr ? take_whole(t, &chunks) : take_flat(t, *shape, &chunks);
      if (taken.ok()) taken = builder.add_tensor(described(t, shape), chunks);
      if (!taken.ok()) return in_tensor(t, std::move(taken));
    }
    for (size_t o = 0; o < stored_.objects.size(); ++o) {
      const plan::ObjectRecord& record = stored_.objects[o];
      SHW_RETURN_IF_ERROR(builder.add_object(record, stored_.object_name(o),
                                             stored_.texts.at(record.path),
                                             stored_.texts.at(record.content_type)));
    }
    plan::find_grids(&contents_.catalog);
    SHW_RETURN_IF_ERROR(plan::check_catalog(contents_.catalog));
    return std::move(contents_);
  }

  // One more axis than the shape: what was saved as it is has as many.
  const Dims* shape_of(size_t t) const {
    const auto found = shapes_.find(stored_.tensor_name(t));
    const bool is_flat =
        found != shapes_.end() && stored_.shape(t).size() == found->second.size() + 1;
    return is_flat ? &found->second : nullptr;
  }

 private:
  Status in_tensor(size_t t, Status status) const {
    const std::string_view name = stored_.tensor_name(t);
    if (status.code() == StatusCode::kInvalidArgument)
      status = data_loss(
          fmt::format("flattened tensor '{}': {}", escape_text(name, 256), status.message()));
    return std::move(status).with_detail("tensor", name);
  }

  plan::CatalogBuilder::Tensor described(size_t t, const Dims* shape) const {
    const plan::TensorRecord& record = stored_.tensors[t];
    return {stored_.tensor_name(t),
            stored_.texts.at(record.path),
            record.dtype,
            record.kind,
            record.rank,
            shape == nullptr ? stored_.shape(t) : shape->span()};
  }

  Status take_whole(size_t t, std::vector<plan::CatalogBuilder::Chunk>* chunks) {
    const plan::TensorRecord& record = stored_.tensors[t];
    for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c) {
      chunks->push_back({stored_.chunk_box(c), stored_.place_of(t, c)});
      contents_.pieces.push_back({c, 0, stored_.chunk_bytes(c), true});
    }
    return {};
  }

  Status take_flat(size_t t, const Dims& shape, std::vector<plan::CatalogBuilder::Chunk>* chunks) {
    const plan::TensorRecord& record = stored_.tensors[t];
    const int64_t bits = dtype_bits(record.dtype);
    if (bits % 8 != 0) return unimplemented("flattened elements of less than a byte");
    SHW_ASSIGN_OR_RETURN(const Dims sizes, flattened_box_sizes(shape, stored_.shape(t)));
    for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c) {
      const Box chunk = stored_.chunk_box(c);
      if (box_is_empty(chunk)) continue;
      Box box{Dims(sizes.size(), 0), sizes};
      for (size_t d = 0; d < sizes.size(); ++d) {
        if (chunk.sizes[d] != 1)
          return invalid_argument(fmt::format("chunk {} is no range of one box", box_text(chunk)));
        box.offsets[d] = chunk.offsets[d] * sizes[d];
      }
      std::vector<shardwright::Piece> boxes;
      append_flat_range(box, {chunk.offsets[sizes.size()], chunk.sizes[sizes.size()]}, &boxes);
      SHW_RETURN_IF_ERROR(count(boxes.size()));
      if (boxes.size() > 1) contents_.cut.push_back(c);
      for (const shardwright::Piece& each : boxes) {
        const auto element_bytes = static_cast<uint64_t>(bits / 8);
        const auto elements = static_cast<uint64_t>(box_element_count(each.box));
        chunks->push_back({each.box, stored_.place_of(t, c)});
        contents_.pieces.push_back(
            {c, static_cast<uint64_t>(each.local_offset_elements) * element_bytes,
             elements * element_bytes, boxes.size() == 1});
      }
    }
    return {};
  }

  Status count(size_t boxes) {
    made_ += boxes;
    if (made_ <= most_) return {};
    return resource_exhausted(
        "index",
        fmt::format("the flattened tensors of the index come to more than {} boxes", most_));
  }

  const plan::Catalog& stored_;
  const Shapes& shapes_;
  const uint64_t most_;
  uint64_t made_ = 0;
  Contents contents_;
};

class Unflattened final : public OpenedCheckpoint {
 public:
  Unflattened(Location location, std::shared_ptr<const OpenedCheckpoint> data, Contents contents)
      : location_(std::move(location)), data_(std::move(data)), contents_(std::move(contents)) {}

  std::string_view format_name() const override { return data_->format_name(); }
  std::string_view generation() const override { return data_->generation(); }
  std::string_view identity() const override { return data_->identity(); }
  int32_t world_size() const override { return data_->world_size(); }
  int64_t created_unix_ns() const override { return data_->created_unix_ns(); }
  const std::map<std::string, std::string>& metadata() const override { return data_->metadata(); }
  const plan::Catalog& catalog() const override { return contents_.catalog; }
  bool is_partial() const override { return data_->is_partial(); }
  const std::vector<FileInfo>& files() const override { return data_->files(); }
  const std::vector<std::string>& notes() const override { return data_->notes(); }
  Result<std::unique_ptr<storage::StorageObject>> open_derived() const override {
    return data_->open_derived();
  }
  uint32_t chunk_file(size_t chunk) const override {
    return data_->chunk_file(contents_.pieces[chunk].chunk);
  }
  uint32_t object_file(size_t object) const override { return data_->object_file(object); }
  Result<Extent> chunk_extent(size_t chunk) const override {
    const Piece& piece = contents_.pieces[chunk];
    SHW_ASSIGN_OR_RETURN(const Extent extent, data_->chunk_extent(piece.chunk));
    return Extent{extent.file, extent.offset + piece.offset_bytes, piece.size_bytes};
  }
  Result<Extent> object_extent(size_t object) const override {
    return data_->object_extent(object);
  }
  bool locates() const override { return data_->locates(); }
  Status locate(std::span<const StoredItem> items) const override;
  uint64_t digest_block_bytes() const override { return data_->digest_block_bytes(); }
  Status prepare_file(uint32_t file) const override { return data_->prepare_file(file); }
  Status check_file(uint32_t file) const override { return data_->check_file(file); }
  bool has_checksums() const override { return data_->has_checksums(); }
  Result<std::optional<uint32_t>> item_checksum(const StoredItem& item) const override {
    if (item.kind != StoredItem::Kind::kChunk) return data_->item_checksum(item);
    const Piece& piece = contents_.pieces[item.number];
    if (!piece.is_whole) return std::optional<uint32_t>();
    return data_->item_checksum({item.kind, piece.chunk});
  }
  Status check_checksums(uint32_t file) const override;
  Status check_manifest() const override { return data_->check_manifest(); }
  // Blocks are those of stored chunks: of a part of one there are none.
  Status check_chunk_block(size_t chunk, uint64_t block,
                           std::span<const std::byte> bytes) const override {
    const Piece& piece = contents_.pieces[chunk];
    return piece.is_whole ? data_->check_chunk_block(piece.chunk, block, bytes) : Status();
  }
  Status check_object_block(size_t object, uint64_t block,
                            std::span<const std::byte> bytes) const override {
    return data_->check_object_block(object, block, bytes);
  }
  Status explain_missing(uint32_t file) const override { return data_->explain_missing(file); }
  Result<std::vector<Extent>> padding(uint32_t file) const override { return data_->padding(file); }

 private:
  Status check_cut(uint64_t chunk) const;

  const Location location_;
  const std::shared_ptr<const OpenedCheckpoint> data_;  // co-owned with what keeps openings
  const Contents contents_;
};

Status Unflattened::locate(std::span<const StoredItem> items) const {
  std::vector<StoredItem> stored(items.begin(), items.end());
  for (StoredItem& item : stored) {
    if (item.kind == StoredItem::Kind::kChunk) item.number = contents_.pieces[item.number].chunk;
  }
  return data_->locate(stored);
}

// What is read in parts has no checksum of its own: the whole is compared here.
Status Unflattened::check_checksums(uint32_t file) const {
  SHW_RETURN_IF_ERROR(data_->check_checksums(file));
  for (const uint64_t chunk : contents_.cut) {
    if (data_->chunk_file(chunk) == file) SHW_RETURN_IF_ERROR(check_cut(chunk));
  }
  return {};
}

Status Unflattened::check_cut(uint64_t chunk) const {
  const StoredItem item{StoredItem::Kind::kChunk, chunk};
  SHW_RETURN_IF_ERROR(data_->locate({&item, 1}));
  SHW_ASSIGN_OR_RETURN(const Extent extent, data_->chunk_extent(chunk));
  SHW_ASSIGN_OR_RETURN(const std::optional<uint32_t> expected, data_->item_checksum(item));
  if (!expected.has_value() || extent.file >= files().size()) return {};
  SHW_ASSIGN_OR_RETURN(const std::unique_ptr<storage::StorageObject> object,
                       location_.storage->open(stored_key(location_, files()[extent.file]), {}));
  std::vector<std::byte> part;
  uint32_t sum = 0;
  for (uint64_t done = 0; done < extent.size_bytes; done += part.size()) {
    part.resize(static_cast<size_t>(std::min<uint64_t>(kSumBytes, extent.size_bytes - done)));
    SHW_RETURN_IF_ERROR(object->read_at(extent.offset + done, part));
    sum = integrity::crc32(sum, part);
  }
  if (sum == *expected) return object->close();
  const std::string_view name = catalog().tensor_name(data_->catalog().tensor_of(chunk));
  return data_loss(fmt::format("tensor '{}': {} bytes at {} of file '{}' are not those that were "
                               "written: their checksum is another",
                               escape_text(name, 256), extent.size_bytes, extent.offset,
                               escape_text(files()[extent.file].key)))
      .with_detail("tensor", name)
      .with_detail("file", files()[extent.file].key)
      .with_detail("offset", fmt::to_string(extent.offset));
}

Result<std::shared_ptr<const OpenedCheckpoint>> wrap(const Location& location,
                                                     std::shared_ptr<const OpenedCheckpoint> data,
                                                     const Shapes& shapes) {
  const Unflattener unflattener(data->catalog(), shapes);
  bool any = false;
  for (size_t t = 0; t < data->catalog().tensors.size() && !any; ++t)
    any = unflattener.shape_of(t) != nullptr;
  if (!any) return data;
  SHW_ASSIGN_OR_RETURN(Contents contents, Unflattener(data->catalog(), shapes).run());
  return std::shared_ptr<const OpenedCheckpoint>(
      std::make_shared<Unflattened>(location, std::move(data), std::move(contents)));
}

}  // namespace

Result<std::shared_ptr<const OpenedCheckpoint>> unflattened(
    const Location& location, std::shared_ptr<const OpenedCheckpoint> data) {
  const auto found = data->metadata().find(std::string(kAttribute));
  if (found == data->metadata().end()) return data;
  SHW_ASSIGN_OR_RETURN(const Shapes shapes, shapes_in(found->second));
  return wrap(location, std::move(data), shapes);
}

}  // namespace shardwright::format::megatron

// SPDX-License-Identifier: Apache-2.0
//
// Encode and decode of a rank file's index, and the canonical catalog that it holds. The caller
// compares the digest of the bytes with trailer and manifest; the checks here make any bytes safe
// to look at. Pure functions, any thread.
#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/generation_id.h"
#include "core/base/text.h"
#include "core/format/native/buffer_internal.h"
#include "core/format/native/file_items_internal.h"
#include "core/format/native/index_generated.h"
#include "core/format/native/native_format.h"
#include "core/format/native/rank_file.h"
#include "core/plan/wire/catalog_wire.h"

namespace shardwright::format::native {
namespace {

constexpr char kIdentifier[] = "SHWI";
constexpr size_t kTableBytes = 4096;  // the index's own table, for estimates

// Digests that the catalog's chunks and objects need.
Result<uint64_t> needed_digests(const plan::Catalog& catalog) {
  uint64_t count = 0;
  bool fits = true;
  for (size_t chunk = 0; chunk < catalog.boxes.size(); ++chunk) {
    fits = fits && checked_add(count, integrity::block_count(catalog.chunk_bytes(chunk)), &count);
  }
  for (const plan::ObjectRecord& object : catalog.objects) {
    fits = fits && checked_add(count, integrity::block_count(object.size_bytes), &count);
  }
  if (!fits) return data_loss("the index names more blocks than can be counted");
  return count;
}

// Everything lies behind the file's header, and nothing on another; the file's end is the
// manifest's.
Status check_positions(const RankIndex& index) {
  const size_t items = index.catalog.boxes.size() + index.catalog.objects.size();
  if (index.positions.size() != items) {
    return data_loss(fmt::format("the index holds {} positions for {} chunks and objects",
                                 index.positions.size(), items));
  }
  uint64_t end = kFileHeaderBytes;
  for (const StoredItem& item : items_by_position(index)) {
    uint64_t item_end = 0;
    const bool inside =
        item.position >= kFileHeaderBytes && checked_add(item.position, item.size_bytes, &item_end);
    if (!inside || (item.position < end && item.size_bytes != 0)) {
      return data_loss(fmt::format("{} of {} bytes at offset {} {}",
                                   internal::item_text(index.catalog, item.item), item.size_bytes,
                                   item.position,
                                   inside ? "overlaps the one before it"
                                          : "lies in the file's header or behind its end"))
          .with_detail("offset", fmt::to_string(item.position))
          .with_detail("length", fmt::to_string(item.size_bytes));
    }
    end = std::max(end, item_end);
  }
  return {};
}

Status check_index(const RankIndex& index) {
  if (!is_generation_id(index.generation))
    return data_loss("the index's generation is not 32 lower-case hex digits");
  if (index.world_size < 1 || index.world_size > kMaxWorldSize || index.rank < 0 ||
      index.rank >= index.world_size) {
    return data_loss(fmt::format("the index names rank {} of {}", index.rank, index.world_size));
  }
  if (index.catalog.chunk_count() != index.catalog.boxes.size())
    return data_loss("the index names grids where boxes are said");
  const auto elsewhere = [](const auto& record) { return record.place != 0; };
  if (std::ranges::any_of(index.catalog.boxes, elsewhere) ||
      std::ranges::any_of(index.catalog.objects, elsewhere)) {
    return data_loss("the index names something in another file");
  }
  SHW_RETURN_IF_ERROR(check_positions(index));
  SHW_ASSIGN_OR_RETURN(const uint64_t needed, needed_digests(index.catalog));
  const uint64_t expected = index.digests ? needed : 0;
  if (index.block_digests.size() != expected) {
    return data_loss(fmt::format("the index holds {} block digests, its chunks and objects need {}",
                                 index.block_digests.size(), expected));
  }
  return {};
}

}  // namespace

Result<std::vector<std::byte>> encode_index(const RankIndex& index) {
  const uint64_t estimated = plan::catalog_wire_bytes(index.catalog) +
                             index.positions.size() * sizeof(uint64_t) +
                             index.block_digests.size() * sizeof(wire::Digest) + kTableBytes;
  SHW_RETURN_IF_ERROR(plan::check_wire_size(estimated, "index"));
  Status sound = plan::check_catalog(index.catalog);
  if (sound.ok()) sound = check_index(index);
  if (!sound.ok())
    return internal_error(
        fmt::format("an index to be written does not hold together: {}", sound.to_string()));

  flatbuffers::FlatBufferBuilder builder(static_cast<size_t>(estimated));
  const auto digests = builder.CreateVectorOfStructs(
      reinterpret_cast<const wire::Digest*>(index.block_digests.data()),
      index.block_digests.size());
  const auto positions = builder.CreateVector(index.positions);
  const flatbuffers::Offset<wire::Catalog> catalog(plan::encode_catalog(&builder, index.catalog));
  const auto generation = internal::encode_text(&builder, index.generation);
  builder.FinishSizePrefixed(
      wire::CreateIndex(builder, kFormatMajor, kFormatMinor, kFormatMinor, generation, index.rank,
                        index.world_size, !index.digests, catalog, positions, digests),
      kIdentifier);
  const auto* first = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return std::vector<std::byte>(first, first + builder.GetSize());
}

Result<RankIndex> decode_index(std::span<const std::byte> bytes) {
  std::vector<std::byte> aligned;
  Result<std::span<const std::byte>> framed =
      plan::check_buffer_frame(bytes, kIdentifier, &aligned);
  if (!framed.ok())
    return data_loss(fmt::format("these bytes are no index: {}", framed.status().message()));
  const auto* data = reinterpret_cast<const uint8_t*>(framed->data());
  flatbuffers::Verifier verifier(data, framed->size(), internal::verifier_options(framed->size()));
  if (!wire::VerifySizePrefixedIndexBuffer(verifier))
    return data_loss("the index is not a well-formed buffer");
  const wire::Index* table = wire::GetSizePrefixedIndex(data);
  SHW_RETURN_IF_ERROR(internal::check_version(
      {table->format_major(), table->format_minor(), table->minimum_reader_minor()}, "index"));
  RankIndex index;
  index.generation = internal::decode_text(table->generation());
  index.rank = table->rank();
  index.world_size = table->world_size();
  index.digests = !table->without_digests();
  if (table->catalog() == nullptr) return data_loss("the index's catalog is missing");
  Result<plan::Catalog> catalog = plan::decode_catalog(table->catalog());
  if (!catalog.ok()) {
    return data_loss(
        fmt::format("the index does not hold together: {}", catalog.status().message()));
  }
  index.catalog = std::move(*catalog);
  if (table->positions() != nullptr)
    index.positions.assign(table->positions()->begin(), table->positions()->end());
  if (table->block_digests() != nullptr) {
    index.block_digests.reserve(table->block_digests()->size());
    for (const wire::Digest* each : *table->block_digests())
      index.block_digests.push_back(wire::decode_digest(*each));
  }
  SHW_RETURN_IF_ERROR(check_index(index));
  return index;
}

std::vector<StoredItem> items_by_position(const RankIndex& index) {
  const plan::Catalog& catalog = index.catalog;
  const size_t chunks = catalog.boxes.size();
  std::vector<StoredItem> items;
  items.reserve(index.positions.size());
  for (uint32_t item = 0; item < index.positions.size(); ++item) {
    const uint64_t bytes =
        item < chunks ? catalog.chunk_bytes(item) : catalog.objects[item - chunks].size_bytes;
    items.push_back({item, index.positions[item], bytes});
  }
  const auto before = [](const StoredItem& a, const StoredItem& b) {
    return std::tie(a.position, a.size_bytes, a.item) < std::tie(b.position, b.size_bytes, b.item);
  };
  if (!std::ranges::is_sorted(items, before)) std::ranges::sort(items, before);
  return items;
}

Result<plan::Catalog> index_catalog(std::span<const StoredChunk> chunks,
                                    std::span<const StoredObject> objects) {
  plan::Catalog catalog;
  plan::CatalogBuilder builder(&catalog);
  std::vector<plan::CatalogBuilder::Chunk> boxes;
  for (size_t first = 0; first < chunks.size();) {
    const plan::CatalogBuilder::Tensor& tensor = chunks[first].tensor;
    boxes.clear();
    size_t next = first;
    for (; next < chunks.size() && chunks[next].tensor.name == tensor.name &&
           chunks[next].tensor.rank == tensor.rank;
         ++next)
      boxes.push_back({chunks[next].box, 0});
    SHW_RETURN_IF_ERROR(builder.add_tensor(tensor, boxes));
    first = next;
  }
  for (const StoredObject& object : objects) {
    plan::ObjectRecord record = object.record;
    record.place = 0;
    SHW_RETURN_IF_ERROR(builder.add_object(record, object.name, object.path, object.content_type));
  }
  return catalog;
}

Result<plan::Catalog> file_catalog(const plan::Catalog& merged, uint32_t rank) {
  std::vector<StoredChunk> chunks;
  for (uint64_t chunk = 0; chunk < merged.chunk_count(); ++chunk) {
    if (merged.place_of(chunk) != rank) continue;
    const size_t tensor = merged.tensor_of(chunk);
    const plan::TensorRecord& record = merged.tensors[tensor];
    chunks.push_back({{merged.tensor_name(tensor), merged.texts.at(record.path), record.dtype,
                       record.kind, record.rank, merged.shape(tensor)},
                      merged.chunk_box(chunk)});
  }
  std::vector<StoredObject> objects;
  for (const plan::ObjectRecord& record : merged.objects) {
    if (record.place != rank) continue;
    objects.push_back({record, merged.texts.at(record.name), merged.texts.at(record.path),
                       merged.texts.at(record.content_type)});
  }
  return index_catalog(chunks, objects);
}

}  // namespace shardwright::format::native

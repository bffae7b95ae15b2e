// SPDX-License-Identifier: Apache-2.0
//
// Catalog to and from catalog.fbs. Chunk records and further pairs have the same bytes in memory
// and on the wire and are copied whole; begins of tensor records are running sums and are not
// stored.
#include "core/plan/wire/catalog_wire.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/plan/digest.h"
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/wire/catalog_generated.h"
#include "core/plan/wire/columns_internal.h"
#include "core/plan/wire/large_allocator_internal.h"

namespace shardwright::plan {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::Vector;
using internal::copy_column;
using internal::count_of;
using internal::record_at;

static_assert(std::endian::native == std::endian::little,
              "records are copied in little-endian order");
static_assert(sizeof(wire::TensorRecord) == 32);
static_assert(sizeof(wire::ChunkRecord) == sizeof(ChunkRecord));
static_assert(sizeof(wire::ExtentPair) == sizeof(ExtentPair));
static_assert(sizeof(wire::ObjectRecord) == 32);

constexpr uint64_t kTableBytes = 256;  // table, its field table, vector lengths and padding

// A vector of wire structs filled by one copy of equal records; none for an empty column.
template <typename Wire, typename Record>
Offset<Vector<const Wire*>> copy_records(FlatBufferBuilder* builder,
                                         const std::vector<Record>& records) {
  static_assert(sizeof(Wire) == sizeof(Record));
  if (records.empty()) return 0;
  Wire* out = nullptr;
  const auto offset = builder->CreateUninitializedVectorOfStructs(records.size(), &out);
  std::memcpy(static_cast<void*>(out), records.data(), records.size() * sizeof(Record));
  return offset;
}

Offset<Vector<const wire::TensorRecord*>> encode_tensors(FlatBufferBuilder* builder,
                                                         const Catalog& catalog) {
  if (catalog.tensors.empty()) return 0;
  wire::TensorRecord* out = nullptr;
  const auto offset = builder->CreateUninitializedVectorOfStructs(catalog.tensors.size(), &out);
  for (const TensorRecord& tensor : catalog.tensors) {
    *out++ =
        wire::TensorRecord(tensor.name, tensor.path, tensor.split_mask, tensor.chunk_count,
                           tensor.rank, static_cast<uint16_t>(tensor.dimension_count),
                           static_cast<uint8_t>(tensor.dtype), static_cast<uint8_t>(tensor.kind));
  }
  return offset;
}

Offset<Vector<const wire::ObjectRecord*>> encode_objects(FlatBufferBuilder* builder,
                                                         const Catalog& catalog) {
  if (catalog.objects.empty()) return 0;
  wire::ObjectRecord* out = nullptr;
  const auto offset = builder->CreateUninitializedVectorOfStructs(catalog.objects.size(), &out);
  for (const ObjectRecord& object : catalog.objects) {
    *out++ =
        wire::ObjectRecord(object.name, object.path, object.content_type, object.place,
                           object.size_bytes, object.rank, static_cast<uint8_t>(object.kind), 0, 0);
  }
  return offset;
}

Offset<Vector<uint64_t>> encode_numbers(FlatBufferBuilder* builder, const void* data,
                                        size_t count) {
  if (count == 0) return 0;
  uint8_t* out = nullptr;
  const auto offset =
      builder->CreateUninitializedVector(count, sizeof(uint64_t), alignof(uint64_t), &out);
  std::memcpy(out, data, count * sizeof(uint64_t));
  return offset;
}

Result<std::vector<TensorRecord>> copy_tensors(const Vector<const wire::TensorRecord*>* from) {
  std::vector<TensorRecord> tensors(count_of(from));
  uint64_t shape_begin = 0;
  uint64_t chunk_begin = 0;
  uint64_t more_begin = 0;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const wire::TensorRecord record = record_at(from, t);
    TensorRecord& tensor = tensors[t];
    tensor.name = record.name();
    tensor.path = record.path();
    tensor.dtype = static_cast<DType>(record.dtype());
    tensor.kind = static_cast<EntryKind>(record.kind());
    tensor.rank = record.rank();
    tensor.shape_begin = shape_begin;
    tensor.dimension_count = record.dimension_count();
    tensor.split_mask = record.split_mask();
    tensor.chunk_begin = chunk_begin;
    tensor.chunk_count = record.chunk_count();
    tensor.more_begin = more_begin;
    uint64_t more = 0;
    shape_begin += tensor.dimension_count;
    if (!checked_add(chunk_begin, tensor.chunk_count, &chunk_begin) ||
        !checked_multiply(tensor.chunk_count,
                          internal::more_per_chunk(internal::split_count(tensor)), &more) ||
        !checked_add(more_begin, more, &more_begin)) {
      return data_loss(fmt::format("tensor {} counts {} chunks", t, tensor.chunk_count));
    }
  }
  return tensors;
}

Result<std::vector<ObjectRecord>> copy_objects(const Vector<const wire::ObjectRecord*>* from) {
  std::vector<ObjectRecord> objects(count_of(from));
  for (size_t i = 0; i < objects.size(); ++i) {
    const wire::ObjectRecord record = record_at(from, i);
    if (record.reserved0() != 0 || record.reserved1() != 0) {
      return data_loss(fmt::format("object {} has a reserved byte that is not zero", i));
    }
    objects[i] = {
        record.name(), record.path(),  record.content_type(), static_cast<EntryKind>(record.kind()),
        record.rank(), record.place(), record.size_bytes()};
  }
  return objects;
}

}  // namespace

uint64_t catalog_wire_bytes(const CatalogView& catalog) {
  return kTableBytes + catalog.texts.blob().size() + 8 * catalog.texts.ends().size() +
         8 * catalog.shapes.size() + sizeof(wire::TensorRecord) * catalog.tensors.size() +
         sizeof(wire::ChunkRecord) * catalog.chunks.size() +
         sizeof(wire::ExtentPair) * catalog.more.size() +
         sizeof(wire::ObjectRecord) * catalog.objects.size();
}

Status check_wire_size(uint64_t bytes, std::string_view what) {
  if (bytes <= kMaxFlatBufferBytes) return {};
  return resource_exhausted("buffer_bytes",
                            fmt::format("{} needs up to {} bytes, more than a buffer of {} holds",
                                        what, bytes, kMaxFlatBufferBytes))
      .with_detail("limit", std::to_string(kMaxFlatBufferBytes));
}

uint32_t encode_catalog(FlatBufferBuilder* builder, const Catalog& catalog) {
  const std::span<const char> blob = catalog.texts.blob();
  const std::span<const uint64_t> ends = catalog.texts.ends();
  Offset<Vector<uint8_t>> texts = 0;
  if (!blob.empty())
    texts = builder->CreateVector(reinterpret_cast<const uint8_t*>(blob.data()), blob.size());
  const auto text_ends = encode_numbers(builder, ends.data(), ends.size());
  const auto shapes = encode_numbers(builder, catalog.shapes.data(), catalog.shapes.size());
  const auto tensors = encode_tensors(builder, catalog);
  const auto chunks = copy_records<wire::ChunkRecord>(builder, catalog.chunks);
  const auto more = copy_records<wire::ExtentPair>(builder, catalog.more);
  const auto objects = encode_objects(builder, catalog);
  return wire::CreateCatalog(*builder, texts, text_ends, shapes, tensors, chunks, more, objects).o;
}

Result<std::vector<TensorRecord>> copy_tensor_records(const wire::Catalog* table) {
  return copy_tensors(table->tensors());
}

Result<std::vector<ObjectRecord>> copy_object_records(const wire::Catalog* table) {
  return copy_objects(table->objects());
}

Result<Catalog> copy_catalog(const wire::Catalog* table) {
  if (table == nullptr) return data_loss("the buffer holds no catalog");
  Catalog catalog;
  catalog.texts = TextColumn::from_parts(copy_column<char>(table->texts()),
                                         copy_column<uint64_t>(table->text_ends()));
  catalog.shapes = copy_column<int64_t>(table->shapes());
  catalog.chunks = copy_column<ChunkRecord>(table->chunks());
  catalog.more = copy_column<ExtentPair>(table->more());
  SHW_ASSIGN_OR_RETURN(catalog.tensors, copy_tensors(table->tensors()));
  SHW_ASSIGN_OR_RETURN(catalog.objects, copy_objects(table->objects()));
  return catalog;
}

Result<Catalog> decode_catalog(const wire::Catalog* table) {
  SHW_ASSIGN_OR_RETURN(Catalog catalog, copy_catalog(table));
  SHW_RETURN_IF_ERROR(check_catalog(catalog));
  return catalog;
}

Result<Digest128> catalog_digest(const Catalog& catalog) {
  const uint64_t size = catalog_wire_bytes(catalog);
  SHW_RETURN_IF_ERROR(check_wire_size(size, "the catalog"));
  internal::LargeAllocator allocator;
  FlatBufferBuilder builder(size, &allocator);
  builder.FinishSizePrefixed(Offset<wire::Catalog>(encode_catalog(&builder, catalog)));
  return content_digest(std::as_bytes(builder.GetBufferSpan()));
}

}  // namespace shardwright::plan

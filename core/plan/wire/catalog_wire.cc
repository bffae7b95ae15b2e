// SPDX-License-Identifier: Apache-2.0
//
// Catalog to and from catalog.fbs. Chunk records and further pairs have the same bytes in memory
// and on the wire and are copied whole; begins of tensor records are running sums and are not
// stored. Splits and rank maps prove themselves when they are made.
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
#include "core/plan/wire/vectors_internal.h"

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
static_assert(sizeof(wire::TensorRecord) == 40);
static_assert(sizeof(wire::ChunkRecord) == sizeof(ChunkRecord));
static_assert(sizeof(wire::ExtentPair) == sizeof(ExtentPair));
static_assert(sizeof(wire::ObjectRecord) == 32);
static_assert(sizeof(wire::PartRun) == sizeof(PartRun));
static_assert(sizeof(wire::RankLevel) == sizeof(RankLevel));

constexpr uint64_t kTableBytes = 384;     // table, its field table, vector lengths and padding
constexpr uint32_t kColumn = 0xFFFFFFFF;  // level_count of a map that is a column

Offset<Vector<const wire::TensorRecord*>> encode_tensors(FlatBufferBuilder* builder,
                                                         const Catalog& catalog) {
  if (catalog.tensors.empty()) return 0;
  wire::TensorRecord* out = nullptr;
  const auto offset = builder->CreateUninitializedVectorOfStructs(catalog.tensors.size(), &out);
  for (const TensorRecord& tensor : catalog.tensors) {
    *out++ = wire::TensorRecord(tensor.name, tensor.path, tensor.split_mask, tensor.chunk_count,
                                tensor.rank, static_cast<uint16_t>(tensor.dimension_count),
                                static_cast<uint8_t>(tensor.dtype),
                                static_cast<uint8_t>(tensor.kind), tensor.rank_map, 0);
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

// The columns of splits and rank maps, in memory as on the wire.
struct GridColumns {
  std::vector<wire::Split> splits;
  std::vector<PartRun> part_runs;
  std::vector<wire::RankMap> rank_maps;
  std::vector<RankLevel> rank_levels;
  std::vector<uint32_t> rank_columns;
};

GridColumns grid_columns(const Catalog& catalog) {
  GridColumns columns;
  const auto append = [](auto* column, auto values) {
    column->insert(column->end(), values.begin(), values.end());
  };
  for (const DimSplit& split : catalog.splits) {
    columns.splits.emplace_back(split.repeats(), static_cast<uint32_t>(split.runs().size()), 0U);
    append(&columns.part_runs, split.runs());
  }
  for (const RankMap& map : catalog.rank_maps) {
    const auto levels = static_cast<uint32_t>(map.levels().size());
    columns.rank_maps.emplace_back(map.count(), map.base(), map.is_affine() ? levels : kColumn);
    append(&columns.rank_levels, map.levels());
    append(&columns.rank_columns, map.column());
  }
  return columns;
}

uint64_t grid_wire_bytes(const Catalog& catalog) {
  uint64_t bytes = sizeof(uint32_t) * catalog.grids.size();
  for (const DimSplit& split : catalog.splits)
    bytes += sizeof(wire::Split) + sizeof(wire::PartRun) * split.runs().size();
  for (const RankMap& map : catalog.rank_maps) {
    bytes += sizeof(wire::RankMap) + sizeof(wire::RankLevel) * map.levels().size() +
             sizeof(uint32_t) * map.column().size();
  }
  return bytes;
}

// 64-bit numbers of either sign.
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
  uint64_t grid_begin = 0;
  uint64_t box_begin = 0;
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
    tensor.rank_map = record.rank_map();
    shape_begin += tensor.dimension_count;
    uint64_t more = 0;
    bool fits =
        record.reserved() == 0 && checked_add(chunk_begin, tensor.chunk_count, &chunk_begin);
    if (tensor.is_grid()) {
      tensor.grid_begin = grid_begin;
      grid_begin += internal::split_count(tensor);
    } else {
      tensor.box_begin = box_begin;
      tensor.more_begin = more_begin;
      box_begin += tensor.chunk_count;
      fits = fits &&
             checked_multiply(tensor.chunk_count,
                              internal::more_per_chunk(internal::split_count(tensor)), &more) &&
             checked_add(more_begin, more, &more_begin);
    }
    if (!fits) return data_loss(fmt::format("tensor {} counts {} chunks", t, tensor.chunk_count));
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

// `count` elements of the column from *begin on, which moves behind them.
template <typename Value>
Result<std::vector<Value>> take(const std::vector<Value>& column, uint64_t count, size_t* begin,
                                std::string_view what) {
  if (count > column.size() - *begin)
    return data_loss(fmt::format("the {} need more than the {} there are", what, column.size()));
  const auto first = column.begin() + static_cast<std::ptrdiff_t>(*begin);
  *begin += count;
  return std::vector<Value>(first, first + static_cast<std::ptrdiff_t>(count));
}

Status all_used(size_t used, size_t size, std::string_view what) {
  if (used == size) return {};
  return data_loss(fmt::format("{} of {} {} are used", used, size, what));
}

Status copy_splits(const wire::Catalog& table, Catalog* catalog) {
  const std::vector<PartRun> runs = copy_column<PartRun>(table.part_runs());
  size_t used = 0;
  for (size_t i = 0; i < count_of(table.splits()); ++i) {
    const wire::Split record = record_at(table.splits(), i);
    SHW_ASSIGN_OR_RETURN(std::vector<PartRun> own, take(runs, record.run_count(), &used, "splits"));
    Result<DimSplit> split = DimSplit::from_runs(std::move(own), record.repeats());
    if (!split.ok()) return Status(split.status()).annotated(fmt::format("read split {}", i));
    catalog->splits.push_back(*std::move(split));
  }
  return all_used(used, runs.size(), "runs of parts");
}

Result<RankMap> copy_rank_map(const wire::RankMap& record, const std::vector<RankLevel>& levels,
                              const std::vector<uint32_t>& columns, size_t* levels_used,
                              size_t* columns_used) {
  if (record.level_count() != kColumn) {
    SHW_ASSIGN_OR_RETURN(std::vector<RankLevel> own,
                         take(levels, record.level_count(), levels_used, "rank maps"));
    return RankMap::from_levels(record.count(), record.base(), std::move(own), kMaxWorldSize);
  }
  SHW_ASSIGN_OR_RETURN(std::vector<uint32_t> own,
                       take(columns, record.count(), columns_used, "rank maps"));
  if (record.base() != 0) return data_loss("a column of ranks has a base");
  return RankMap::from_column(std::move(own), kMaxWorldSize);
}

Status copy_rank_maps(const wire::Catalog& table, Catalog* catalog) {
  const std::vector<RankLevel> levels = copy_column<RankLevel>(table.rank_levels());
  const std::vector<uint32_t> columns = copy_column<uint32_t>(table.rank_columns());
  size_t levels_used = 0;
  size_t columns_used = 0;
  for (size_t i = 0; i < count_of(table.rank_maps()); ++i) {
    Result<RankMap> map = copy_rank_map(record_at(table.rank_maps(), i), levels, columns,
                                        &levels_used, &columns_used);
    if (!map.ok()) return Status(map.status()).annotated(fmt::format("read rank map {}", i));
    catalog->rank_maps.push_back(*std::move(map));
  }
  SHW_RETURN_IF_ERROR(all_used(levels_used, levels.size(), "levels of rank maps"));
  return all_used(columns_used, columns.size(), "ranks of columns");
}

}  // namespace

uint64_t catalog_wire_bytes(const Catalog& catalog) {
  return kTableBytes + catalog.texts.blob().size() + 8 * catalog.texts.ends().size() +
         8 * catalog.shapes.size() + sizeof(wire::TensorRecord) * catalog.tensors.size() +
         sizeof(wire::ChunkRecord) * catalog.boxes.size() +
         sizeof(wire::ExtentPair) * catalog.more.size() +
         sizeof(wire::ObjectRecord) * catalog.objects.size() + grid_wire_bytes(catalog);
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
  const auto texts = internal::bytes_of(builder, blob.data(), blob.size());
  const auto text_ends = encode_numbers(builder, ends.data(), ends.size());
  const auto shapes = encode_numbers(builder, catalog.shapes.data(), catalog.shapes.size());
  const auto tensors = encode_tensors(builder, catalog);
  const auto boxes = internal::records_of<wire::ChunkRecord>(builder, catalog.boxes);
  const auto more = internal::records_of<wire::ExtentPair>(builder, catalog.more);
  const auto objects = encode_objects(builder, catalog);
  const GridColumns columns = grid_columns(catalog);
  const auto splits = internal::records_of<wire::Split>(builder, columns.splits);
  const auto part_runs = internal::records_of<wire::PartRun>(builder, columns.part_runs);
  const auto grids = internal::numbers_of(builder, catalog.grids);
  const auto rank_maps = internal::records_of<wire::RankMap>(builder, columns.rank_maps);
  const auto rank_levels = internal::records_of<wire::RankLevel>(builder, columns.rank_levels);
  const auto rank_columns = internal::numbers_of(builder, columns.rank_columns);
  return wire::CreateCatalog(*builder, texts, text_ends, shapes, tensors, boxes, more, objects,
                             splits, part_runs, grids, rank_maps, rank_levels, rank_columns)
      .o;
}

Result<Catalog> copy_catalog(const wire::Catalog* table) {
  if (table == nullptr) return data_loss("the buffer holds no catalog");
  Catalog catalog;
  catalog.texts = TextColumn::from_parts(copy_column<char>(table->texts()),
                                         copy_column<uint64_t>(table->text_ends()));
  catalog.shapes = copy_column<int64_t>(table->shapes());
  catalog.boxes = copy_column<ChunkRecord>(table->boxes());
  catalog.more = copy_column<ExtentPair>(table->more());
  catalog.grids = copy_column<uint32_t>(table->grids());
  SHW_RETURN_IF_ERROR(copy_splits(*table, &catalog));
  SHW_RETURN_IF_ERROR(copy_rank_maps(*table, &catalog));
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

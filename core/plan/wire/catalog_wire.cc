// SPDX-License-Identifier: Apache-2.0
//
// Catalog to and from catalog.fbs. Chunk records and further pairs have the same bytes in memory
// and on the wire and are copied whole; begins of tensor records are running sums and are not
// stored. Splits and rank maps prove themselves when they are made.
#include "core/plan/wire/catalog_wire.h"

#include <bit>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/integrity/digest.h"
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/wire/catalog_generated.h"
#include "core/plan/wire/large_allocator_internal.h"
#include "core/plan/wire/vectors_internal.h"

namespace shardwright::plan {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::Vector;
using internal::copy_column;
using internal::count_of;
using internal::numbers_of;
using internal::record_at;

static_assert(std::endian::native == std::endian::little,
              "records are copied in little-endian order");
static_assert(sizeof(wire::TensorRecord) == 40);
static_assert(sizeof(wire::ObjectRecord) == 32);

constexpr uint64_t kTableBytes = 384;     // table, its field table, vector lengths and padding
constexpr uint32_t kColumn = 0xFFFFFFFF;  // level_count of a map that is a column

Offset<Vector<const wire::TensorRecord*>> encode_tensors(FlatBufferBuilder* builder,
                                                         const Catalog& catalog) {
  if (catalog.tensors.empty()) return 0;
  const auto convert = [](const TensorRecord& tensor) {
    return wire::TensorRecord(tensor.name, tensor.path, tensor.split_mask, tensor.chunk_count,
                              tensor.rank, static_cast<uint16_t>(tensor.dimension_count),
                              static_cast<uint8_t>(tensor.dtype), static_cast<uint8_t>(tensor.kind),
                              tensor.rank_map, 0);
  };
  return internal::converted<wire::TensorRecord>(builder, catalog.tensors, convert);
}

Offset<Vector<const wire::ObjectRecord*>> encode_objects(FlatBufferBuilder* builder,
                                                         const Catalog& catalog) {
  if (catalog.objects.empty()) return 0;
  const auto convert = [](const ObjectRecord& object) {
    return wire::ObjectRecord(object.name, object.path, object.content_type, object.place,
                              object.size_bytes, object.rank, static_cast<uint8_t>(object.kind), 0,
                              0);
  };
  return internal::converted<wire::ObjectRecord>(builder, catalog.objects, convert);
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

// Sums that pass 2^64 begin anew; check_catalog refuses what comes to that.
Result<std::vector<TensorRecord>> copy_tensors(const Vector<const wire::TensorRecord*>* from) {
  std::vector<TensorRecord> tensors(count_of(from));
  internal::TensorBegins begins;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const wire::TensorRecord record = record_at(from, t);
    if (record.reserved() != 0)
      return data_loss(fmt::format("tensor {} has a reserved byte that is not zero", t));
    TensorRecord& tensor = tensors[t];
    tensor.name = record.name();
    tensor.path = record.path();
    tensor.dtype = static_cast<DType>(record.dtype());
    tensor.kind = static_cast<EntryKind>(record.kind());
    tensor.rank = record.rank();
    tensor.dimension_count = record.dimension_count();
    tensor.split_mask = record.split_mask();
    tensor.chunk_count = record.chunk_count();
    tensor.rank_map = record.rank_map();
    begins.place(&tensor);
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

// A column that records use run by run.
template <typename Value>
struct Runs {
  std::vector<Value> column;
  size_t used = 0;

  Result<std::vector<Value>> take(uint64_t count, std::string_view what) {
    if (count > column.size() - used)
      return data_loss(fmt::format("the {} need more than the {} there are", what, column.size()));
    const auto first = column.begin() + static_cast<std::ptrdiff_t>(used);
    used += count;
    return std::vector<Value>(first, first + static_cast<std::ptrdiff_t>(count));
  }

  Status all_used(std::string_view what) const {
    if (used == column.size()) return {};
    return data_loss(fmt::format("{} of {} {} are used", used, column.size(), what));
  }
};

Status copy_splits(const wire::Catalog& table, Catalog* catalog) {
  Runs<PartRun> runs{copy_column<PartRun>(table.part_runs())};
  for (size_t i = 0; i < count_of(table.splits()); ++i) {
    const wire::Split record = record_at(table.splits(), i);
    SHW_ASSIGN_OR_RETURN(std::vector<PartRun> own, runs.take(record.run_count(), "splits"));
    Result<DimSplit> split = DimSplit::from_runs(std::move(own), record.repeats());
    if (!split.ok()) return Status(split.status()).annotated(fmt::format("read split {}", i));
    catalog->splits.push_back(*std::move(split));
  }
  return runs.all_used("runs of parts");
}

Result<RankMap> copy_rank_map(const wire::RankMap& record, Runs<RankLevel>* levels,
                              Runs<uint32_t>* columns) {
  if (record.level_count() != kColumn) {
    SHW_ASSIGN_OR_RETURN(std::vector<RankLevel> own,
                         levels->take(record.level_count(), "rank maps"));
    return RankMap::from_levels(record.count(), record.base(), std::move(own), kMaxWorldSize);
  }
  SHW_ASSIGN_OR_RETURN(std::vector<uint32_t> own, columns->take(record.count(), "rank maps"));
  if (record.base() != 0) return data_loss("a column of ranks has a base");
  return RankMap::from_column(std::move(own), kMaxWorldSize);
}

Status copy_rank_maps(const wire::Catalog& table, Catalog* catalog) {
  Runs<RankLevel> levels{copy_column<RankLevel>(table.rank_levels())};
  Runs<uint32_t> columns{copy_column<uint32_t>(table.rank_columns())};
  for (size_t i = 0; i < count_of(table.rank_maps()); ++i) {
    Result<RankMap> map = copy_rank_map(record_at(table.rank_maps(), i), &levels, &columns);
    if (!map.ok()) return Status(map.status()).annotated(fmt::format("read rank map {}", i));
    catalog->rank_maps.push_back(*std::move(map));
  }
  SHW_RETURN_IF_ERROR(levels.all_used("levels of rank maps"));
  return columns.all_used("ranks of columns");
}

}  // namespace

uint64_t catalog_wire_bytes(const Catalog& catalog) {
  const GridColumns grids = grid_columns(catalog);
  return kTableBytes + sizeof(wire::TensorRecord) * catalog.tensors.size() +
         sizeof(wire::ObjectRecord) * catalog.objects.size() +
         internal::bytes_of(catalog.texts.blob(), catalog.texts.ends(), catalog.shapes,
                            catalog.boxes, catalog.more, grids.splits, grids.part_runs,
                            catalog.grids, grids.rank_maps, grids.rank_levels, grids.rank_columns);
}

Status check_wire_size(uint64_t bytes, std::string_view what) {
  if (bytes <= kMaxFlatBufferBytes) return {};
  return resource_exhausted("buffer_bytes",
                            fmt::format("{} needs up to {} bytes, more than a buffer of {} holds",
                                        what, bytes, kMaxFlatBufferBytes))
      .with_detail("limit", std::to_string(kMaxFlatBufferBytes));
}

uint32_t encode_catalog(FlatBufferBuilder* builder, const Catalog& catalog) {
  const auto texts = numbers_of<uint8_t>(builder, catalog.texts.blob());
  const auto text_ends = numbers_of<uint64_t>(builder, catalog.texts.ends());
  const auto shapes = numbers_of<uint64_t>(builder, catalog.shapes);
  const auto tensors = encode_tensors(builder, catalog);
  const auto boxes = internal::records_of<wire::ChunkRecord>(builder, catalog.boxes);
  const auto more = internal::records_of<wire::ExtentPair>(builder, catalog.more);
  const auto objects = encode_objects(builder, catalog);
  const GridColumns columns = grid_columns(catalog);
  const auto splits = internal::records_of<wire::Split>(builder, columns.splits);
  const auto part_runs = internal::records_of<wire::PartRun>(builder, columns.part_runs);
  const auto grids = numbers_of<uint32_t>(builder, catalog.grids);
  const auto rank_maps = internal::records_of<wire::RankMap>(builder, columns.rank_maps);
  const auto rank_levels = internal::records_of<wire::RankLevel>(builder, columns.rank_levels);
  const auto rank_columns = numbers_of<uint32_t>(builder, columns.rank_columns);
  return wire::CreateCatalog(*builder, texts, text_ends, shapes, tensors, boxes, more, objects,
                             splits, part_runs, grids, rank_maps, rank_levels, rank_columns)
      .o;
}

Result<Catalog> copy_catalog(const wire::Catalog* table) {
  if (table == nullptr) return data_loss("the buffer holds no catalog");
  Catalog catalog;
  catalog.texts = TextTable::from_parts(copy_column<char>(table->texts()),
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
  return integrity::xxh3_128(std::as_bytes(builder.GetBufferSpan()));
}

}  // namespace shardwright::plan

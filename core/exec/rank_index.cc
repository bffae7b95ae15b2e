// SPDX-License-Identifier: Apache-2.0
//
// The index of a rank's file: what the list names, in its order, with positions and digests.
#include "core/exec/rank_index_internal.h"

#include "core/format/native/rank_file.h"

namespace shardwright::exec::internal {
namespace {

namespace native = format::native;

native::StoredChunk stored_chunk(const FillSource& source, const plan::WriteItem& item) {
  const TensorRef entry = source.state.tensors()[item.entry];
  const plan::TensorRecord& record = source.local.description.catalog.tensors[item.entry];
  native::StoredChunk chunk;
  chunk.tensor = {
      entry.name,        entry.path, record.dtype, record.kind, source.owner(record.rank),
      entry.global_shape};
  chunk.box = entry.pieces[item.piece].box;
  return chunk;
}

native::StoredObject stored_object(const FillSource& source, const plan::WriteItem& item) {
  const ObjectEntry& entry = source.state.objects()[item.entry];
  const plan::ObjectRecord& record = source.local.description.catalog.objects[item.entry];
  native::StoredObject object;
  object.record.kind = record.kind;
  object.record.rank = source.owner(record.rank);
  object.record.size_bytes = item.size_bytes;
  object.name = entry.name;
  object.path = entry.path;
  object.content_type = entry.content_type;
  return object;
}

}  // namespace

Result<std::vector<std::byte>> encode_rank_index(const FillSource& source,
                                                 const BlockFiller& filler) {
  std::vector<native::StoredChunk> chunks;
  std::vector<native::StoredObject> objects;
  chunks.reserve(source.list.items.size());
  for (const plan::WriteItem& item : source.list.items) {
    if (item.piece == plan::kObjectPiece) {
      objects.push_back(stored_object(source, item));
    } else {
      chunks.push_back(stored_chunk(source, item));
    }
  }
  native::RankIndex index;
  index.generation = source.list.generation;
  index.rank = source.list.rank;
  index.world_size = source.list.world_size;
  index.digests = source.digests;
  SHW_ASSIGN_OR_RETURN(index.catalog, native::index_catalog(chunks, objects));
  index.positions.resize(source.list.items.size());
  for (const native::PlacedItem& placed : source.layout.items)
    index.positions[placed.item] = placed.position;
  index.block_digests.assign(filler.digests().begin(), filler.digests().end());
  return native::encode_index(index);
}

}  // namespace shardwright::exec::internal

// SPDX-License-Identifier: Apache-2.0
//
// The format puts the catalog of an index into its canonical order; digests, which lie in the order
// of items, follow it: each chunk and object finds its item by its position in the file.
#include "core/exec/rank_index_internal.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/format/native/rank_file.h"

namespace shardwright::exec::internal {
namespace {

namespace native = format::native;

native::StoredChunk stored_chunk(const FillSource& source, const plan::WriteItem& item) {
  const TensorRef entry = source.state.tensors()[item.entry];
  const plan::TensorRecord& record = source.local.catalog.tensors[item.entry];
  native::StoredChunk chunk;
  chunk.tensor = {entry.name,  entry.path,  record.dtype,
                  record.kind, record.rank, entry.global_shape};
  chunk.box = entry.pieces[item.piece].box;
  chunk.position = item.position;
  return chunk;
}

native::StoredObject stored_object(const FillSource& source, const plan::WriteItem& item) {
  const ObjectEntry& entry = source.state.objects()[item.entry];
  const plan::ObjectRecord& record = source.local.catalog.objects[item.entry];
  native::StoredObject object;
  object.record.kind = record.kind;
  object.record.rank = record.rank;
  object.record.size_bytes = item.size_bytes;
  object.record.position = item.position;
  object.name = entry.name;
  object.path = entry.path;
  object.content_type = entry.content_type;
  return object;
}

// Finds the item with bytes that lies at a position; cheap when asked in ascending order.
class ItemFinder {
 public:
  explicit ItemFinder(const std::vector<plan::WriteItem>& items) : items_(items) {}

  // Number of the item, or the count of items when there is none.
  size_t find(uint64_t position) {
    if (!matches(next_, position)) {
      const auto found = std::partition_point(
          items_.begin(), items_.end(),
          [&](const plan::WriteItem& item) { return item.position < position; });
      next_ = static_cast<size_t>(found - items_.begin());
      while (next_ < items_.size() && items_[next_].position == position &&
             items_[next_].size_bytes == 0) {
        ++next_;
      }
    }
    return matches(next_, position) ? next_++ : items_.size();
  }

 private:
  bool matches(size_t item, uint64_t position) const {
    return item < items_.size() && items_[item].position == position &&
           items_[item].size_bytes != 0;
  }
  const std::vector<plan::WriteItem>& items_;
  size_t next_ = 0;
};

Status append_digests(const plan::WriteList& list, const BlockFiller& filler,
                      native::RankIndex* index) {
  ItemFinder finder(list.items);
  const auto append = [&](uint64_t position, uint64_t size_bytes) {
    if (size_bytes == 0) return Status();
    const size_t item = finder.find(position);
    if (item == list.items.size()) {
      return internal_error(fmt::format("the index has {} bytes at offset {}, the list has not",
                                        size_bytes, position));
    }
    const auto digests = filler.digests(item);
    index->block_digests.insert(index->block_digests.end(), digests.begin(), digests.end());
    return Status();
  };
  for (size_t i = 0; i < index->catalog.chunks.size(); ++i)
    SHW_RETURN_IF_ERROR(append(index->catalog.chunks[i].position, index->catalog.chunk_bytes(i)));
  for (const plan::ObjectRecord& object : index->catalog.objects)
    SHW_RETURN_IF_ERROR(append(object.position, object.size_bytes));
  return {};
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
  index.block_digests.reserve(filler.digest_count());
  if (source.digests) SHW_RETURN_IF_ERROR(append_digests(source.list, filler, &index));
  return native::encode_index(index);
}

}  // namespace shardwright::exec::internal

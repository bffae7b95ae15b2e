// SPDX-License-Identifier: Apache-2.0
//
// Gives every chunk and object its place in its owner's file. Three passes over the catalog in
// catalog order, one per part of a file; each rank has a cursor.
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/save/file_cursor_internal.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {
namespace {

class FileLayout {
 public:
  FileLayout(const Owners& owners, GlobalSavePlan* plan)
      : owners_(owners), plan_(*plan), cursors_(plan->lists.size()) {}

  Status run() {
    reserve_lists();
    SHW_RETURN_IF_ERROR(place_chunks(Part::kLarge));
    SHW_RETURN_IF_ERROR(place_chunks(Part::kSlab));
    for (size_t i = 0; i < owners_.objects.size(); ++i) {
      ObjectRecord& object = plan_.catalog.objects[i];
      SHW_RETURN_IF_ERROR(place(owners_.objects[i], object.size_bytes, &object.position));
    }
    number_files();
    return {};
  }

 private:
  enum class Part { kLarge, kSlab };

  void reserve_lists() {
    std::vector<size_t> counts(plan_.lists.size(), 0);
    for (const Holder& owner : owners_.chunks) ++counts[owner.rank];
    for (const Holder& owner : owners_.objects) ++counts[owner.rank];
    for (size_t r = 0; r < counts.size(); ++r) plan_.lists[r].items.reserve(counts[r]);
  }

  Status place_chunks(Part part) {
    Catalog& catalog = plan_.catalog;
    for (size_t t = 0; t < catalog.tensors.size(); ++t) {
      const TensorRecord& tensor = catalog.tensors[t];
      const SplitDims split = split_dims(catalog, t);
      const auto bits = static_cast<uint64_t>(dtype_bits(tensor.dtype));
      for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c) {
        const uint64_t bytes = packed_bytes(bits, chunk_elements(catalog, tensor, split, c));
        if ((bytes >= kSlabChunkLimitBytes) != (part == Part::kLarge)) continue;
        SHW_RETURN_IF_ERROR(place(owners_.chunks[c], bytes, &catalog.chunks[c].position));
      }
    }
    return {};
  }

  Status place(const Holder& owner, uint64_t bytes, uint64_t* position) {
    SHW_RETURN_IF_ERROR(cursors_[owner.rank].place(owner.rank, bytes, position));
    plan_.lists[owner.rank].items.push_back({owner.entry, owner.piece, *position, bytes});
    return {};
  }

  // Ranks that write something get the files, ascending; places become file numbers.
  void number_files() {
    std::vector<uint32_t> file_of(plan_.lists.size(), 0);
    for (size_t r = 0; r < plan_.lists.size(); ++r) {
      if (plan_.lists[r].items.empty()) continue;
      plan_.lists[r].data_bytes = cursors_[r].end;
      file_of[r] = static_cast<uint32_t>(plan_.file_ranks.size());
      plan_.file_ranks.push_back(static_cast<int32_t>(r));
    }
    for (ChunkRecord& chunk : plan_.catalog.chunks) chunk.place = file_of[chunk.place];
    for (ObjectRecord& object : plan_.catalog.objects) object.place = file_of[object.place];
  }

  const Owners& owners_;
  GlobalSavePlan& plan_;
  std::vector<FileCursor> cursors_;  // one per rank
};

}  // namespace

Status lay_out_files(const Owners& owners, GlobalSavePlan* plan) {
  return FileLayout(owners, plan).run();
}

}  // namespace shardwright::plan::internal

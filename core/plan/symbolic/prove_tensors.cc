// SPDX-License-Identifier: Apache-2.0
//
// The cover proof by arithmetic. The cuts of a regular tensor divide each of its dimensions (the
// grid proved that when it was made), so its columns tile it, and it is covered exactly once when
// every column that holds elements has a holder; once per grid and holder map. What is listed is
// proved as the explicit planner does, which also finds the words for what is wrong.
#include <algorithm>
#include <tuple>

#include "core/plan/cover/cover_internal.h"
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/save/conflicts_internal.h"
#include "core/plan/symbolic/plan_body_internal.h"

namespace shardwright::plan::internal {
namespace {

class TensorProof {
 public:
  explicit TensorProof(const SymbolicBody& body) : body_(body) {}

  Status run() {
    for (size_t g = 0; g < body_.tensors.size(); ++g) {
      const bool sound = body_.tensors[g].grid != kListed && columns_are_held(g);
      if (!sound) SHW_RETURN_IF_ERROR(prove_listed(g));
    }
    if (!body_.parts.empty()) SHW_RETURN_IF_ERROR(prove_local_tensors());
    return {};
  }

 private:
  bool columns_are_held(size_t group) {
    const TensorPlan& tensor = body_.tensors[group];
    const HolderMap& map = body_.maps[tensor.map];
    if (map.least() > 0) return true;
    const std::pair<uint32_t, uint32_t> key(tensor.grid, tensor.map);
    if (std::ranges::binary_search(held_, key)) return true;
    for (const ColumnRun& run : body_.grids[tensor.grid].runs()) {
      for (uint32_t column = run.first; column < run.first + run.count; ++column) {
        if (map.of(column).empty()) return false;
      }
    }
    held_.insert(std::ranges::lower_bound(held_, key), key);
    return true;
  }

  CatalogBuilder::Tensor tensor_of(size_t group) const {
    const GroupMember& first = body_.merged.tensors.of(group)[0];
    const Catalog& from = body_.description(first).catalog;
    const TensorRecord& record = from.tensors[first.entry];
    return {body_.name(group), from.texts.at(record.path), record.dtype, record.kind, -1,
            body_.shape(group)};
  }

  // Also for a regular tensor with a hole, which it then names.
  Status prove_listed(size_t group) const {
    std::vector<CatalogBuilder::Chunk> chunks;
    const TensorPlan& tensor = body_.tensors[group];
    if (tensor.grid == kListed) {
      const ListedTensor& listed = body_.listed[tensor.map];
      for (size_t c = 0; c < listed.chunk_count(); ++c)
        chunks.push_back({box_of(listed.box(c)), listed.owner(c).rank, 0});
    } else {
      const ShardGrid& grid = body_.grids[tensor.grid];
      std::vector<ExtentPair> pairs(grid.shape().size());
      for (uint64_t c = 0; c < grid.chunk_count(); ++c) {
        const uint32_t column = grid.column_of_chunk(c);
        if (body_.maps[tensor.map].of(column).empty()) continue;
        grid.box_of_column(column, pairs);
        chunks.push_back({box_of(pairs), body_.column_owner(group, column), 0});
      }
    }
    return prove_chunks(tensor_of(group), chunks);
  }

  static Status prove_chunks(const CatalogBuilder::Tensor& tensor,
                             const std::vector<CatalogBuilder::Chunk>& chunks) {
    Catalog catalog;
    SHW_RETURN_IF_ERROR(CatalogBuilder(&catalog).add_tensor(tensor, chunks));
    return prove_cover_naming(catalog, 0, "rank");
  }

  // Each rank's own tensors that come as boxes.
  Status prove_local_tensors() const {
    for (const SymbolicPart& part : body_.ranks.parts) {
      const SymbolicDescription& description = body_.ranks.of(part.rank);
      const Catalog& catalog = description.catalog;
      for (uint32_t t = 0; t < catalog.tensors.size(); ++t) {
        if (catalog.tensors[t].kind != EntryKind::kRankLocal || description.forms[t] != kBoxes)
          continue;
        SHW_RETURN_IF_ERROR(prove_local(catalog, t, part.rank));
      }
    }
    return {};
  }

  Status prove_local(const Catalog& catalog, uint32_t entry, int32_t rank) const {
    const std::vector<ListedBox> boxes = sorted_boxes(body_.parts.boxes(rank, entry));
    std::vector<CatalogBuilder::Chunk> chunks;
    for (size_t i = 0; i < boxes.size(); ++i) {
      if (i > 0 && compare_extents(boxes[i - 1].extents, boxes[i].extents) == 0)
        return listed_twice(catalog.tensor_name(entry), rank, box_of(boxes[i].extents));
      chunks.push_back({box_of(boxes[i].extents), static_cast<uint32_t>(rank), 0});
    }
    const TensorRecord& record = catalog.tensors[entry];
    return prove_chunks({catalog.tensor_name(entry), catalog.texts.at(record.path), record.dtype,
                         record.kind, rank, catalog.shape(entry)},
                        chunks);
  }

  const SymbolicBody& body_;
  std::vector<std::pair<uint32_t, uint32_t>> held_;  // (grid, map) without a hole, ascending
};

}  // namespace

Status prove_tensors(const SymbolicBody& body) {
  return TensorProof(body).run();
}

}  // namespace shardwright::plan::internal

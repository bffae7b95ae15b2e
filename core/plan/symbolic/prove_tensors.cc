// SPDX-License-Identifier: Apache-2.0
//
// The cover proof. The cuts of a regular tensor divide each of its dimensions (the grid proved that
// when it was made), so its columns tile it, and each that holds elements has as many holders as all
// others, at least one: nothing is left to prove. What is listed is proved as the explicit planner
// does.
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
      if (body_.tensors[g].grid == kListed) SHW_RETURN_IF_ERROR(prove_listed(g));
    }
    if (!body_.parts.empty()) SHW_RETURN_IF_ERROR(prove_local_tensors());
    return {};
  }

 private:
  CatalogBuilder::Tensor tensor_of(size_t group) const {
    const GroupMember& first = body_.merged.tensors.of(group)[0];
    const Catalog& from = body_.description(first).catalog;
    const TensorRecord& record = from.tensors[first.entry];
    return {body_.name(group), from.texts.at(record.path), record.dtype, record.kind, -1,
            body_.shape(group)};
  }

  Status prove_listed(size_t group) const {
    const ListedTensor& listed = body_.listed[body_.tensors[group].map];
    std::vector<CatalogBuilder::Chunk> chunks;
    chunks.reserve(listed.chunk_count());
    for (size_t c = 0; c < listed.chunk_count(); ++c)
      chunks.push_back({box_of(listed.box(c)), listed.owner(c).rank, 0});
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
};

}  // namespace

Status prove_tensors(const SymbolicBody& body) {
  return TensorProof(body).run();
}

}  // namespace shardwright::plan::internal

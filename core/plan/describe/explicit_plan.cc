// SPDX-License-Identifier: Apache-2.0
#include "core/plan/describe/explicit_plan.h"

#include <utility>
#include <vector>

#include "core/plan/rank_plans.h"

namespace shardwright::plan {
namespace {

class ExplicitPlan {
 public:
  // part: may be null.
  ExplicitPlan(const SymbolicDescription& description, const SymbolicPart* part,
               RankPosition position)
      : description_(description),
        view_(view_of(description)),
        part_(part == nullptr ? PartView() : view_of(*part)),
        rank_{view_, part_, static_cast<uint32_t>(position.rank)} {
    plan_.rank = position.rank;
    plan_.world_size = position.world_size;
  }

  Result<LocalSavePlan> run() {
    plan_.options_digest = description_.options_digest;
    plan_.options_text = description_.options_text;
    plan_.tensor_digests = description_.tensor_digests;
    plan_.object_digests = description_.object_digests;
    if (!part_.digest_tensors.empty()) plan_.tensor_digests.resize(description_.forms.size());
    for (size_t i = 0; i < part_.digest_tensors.size(); ++i)
      plan_.tensor_digests[part_.digest_tensors[i]] = part_.tensor_digests[i];
    for (uint32_t t = 0; t < description_.forms.size(); ++t) SHW_RETURN_IF_ERROR(add_tensor(t));
    for (uint32_t i = 0; i < description_.catalog.objects.size(); ++i)
      SHW_RETURN_IF_ERROR(add_object(i));
    return std::move(plan_);
  }

 private:
  Status add_tensor(uint32_t t) {
    const Catalog& from = description_.catalog;
    const TensorRecord& record = from.tensors[t];
    std::vector<CatalogBuilder::Chunk> chunks;
    for (Box& box : rank_.boxes_of(t)) {
      if (box_is_empty(box)) continue;
      uint32_t piece = 0;
      if (description_.forms[t] == kBoxes)
        piece = part_.boxes[rank_.list(t).begin + chunks.size()].place;
      chunks.push_back({std::move(box), piece, 0});
    }
    const int32_t owner = record.kind == EntryKind::kRankLocal ? plan_.rank : -1;
    return CatalogBuilder(&plan_.catalog)
        .add_tensor({from.tensor_name(t), from.texts.at(record.path), record.dtype, record.kind,
                     owner, from.shape(t)},
                    chunks);
  }

  Status add_object(uint32_t i) {
    const Catalog& from = description_.catalog;
    ObjectRecord record = from.objects[i];
    record.size_bytes = rank_.object_bytes(i);
    if (record.kind == EntryKind::kRankLocal) record.rank = plan_.rank;
    return CatalogBuilder(&plan_.catalog)
        .add_object(record, from.object_name(i), from.texts.at(record.path),
                    from.texts.at(record.content_type));
  }

  const SymbolicDescription& description_;
  const DescriptionView view_;
  const PartView part_;
  const RankView rank_;
  LocalSavePlan plan_;
};

}  // namespace

Result<LocalSavePlan> expand_local_plan(const RankDescriptions& ranks, int32_t rank) {
  return ExplicitPlan(ranks.of(rank), ranks.part_of(rank), {rank, ranks.rank_count()}).run();
}

Result<LocalSavePlan> expand_local_plan(const LocalSymbolicPlan& plan) {
  return ExplicitPlan(plan.description, &plan.part, {plan.part.rank, plan.part.world_size}).run();
}

Result<Bytes> explicit_local_save(std::span<const std::byte> buffer) {
  SHW_ASSIGN_OR_RETURN(const LocalSymbolicPlan plan, decode_symbolic_local(buffer));
  SHW_ASSIGN_OR_RETURN(const LocalSavePlan local, expand_local_plan(plan));
  return encode(local);
}

}  // namespace shardwright::plan

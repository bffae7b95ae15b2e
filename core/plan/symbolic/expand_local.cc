// SPDX-License-Identifier: Apache-2.0
//
// A rank's description as an explicit local plan.
#include "core/plan/save_plan.h"
#include "core/plan/symbolic/rank_descriptions.h"

namespace shardwright::plan {
namespace {

class LocalExpansion {
 public:
  // part: may be null.
  LocalExpansion(const SymbolicDescription& description, const SymbolicPart* part,
                 RankPosition position)
      : description_(description), part_(part) {
    plan_.rank = position.rank;
    plan_.world_size = position.world_size;
  }

  Result<LocalSavePlan> run() {
    plan_.options_digest = description_.options_digest;
    plan_.options_text = description_.options_text;
    plan_.tensor_digests = description_.tensor_digests;
    plan_.object_digests = description_.object_digests;
    if (part_ != nullptr) add_digests_of_part();
    SHW_RETURN_IF_ERROR(add_tensors());
    SHW_RETURN_IF_ERROR(add_objects());
    return std::move(plan_);
  }

 private:
  Status add_tensors() {
    const Catalog& from = description_.catalog;
    const SymbolicPart none;
    PartBoxesView boxes(part_ == nullptr ? none : *part_);
    for (size_t t = 0; t < from.tensors.size(); ++t) {
      const TensorRecord& record = from.tensors[t];
      const std::span<const int64_t> shape = from.shape(t);
      chunks_.clear();
      if (description_.forms[t] == kBoxes) {
        const PartBoxesView::Boxes own = boxes.next(shape.size());
        for (size_t b = 0; b < own.count; ++b) add_box(box_of(own[b]), b);
      } else if (description_.forms[t] != kNothing) {
        add_box(box_of_axes(description_.axes_of(t), shape, plan_.rank), 0);
      }
      const int32_t owner = record.kind == EntryKind::kRankLocal ? plan_.rank : -1;
      SHW_RETURN_IF_ERROR(CatalogBuilder(&plan_.catalog)
                              .add_tensor({from.tensor_name(t), from.texts.at(record.path),
                                           record.dtype, record.kind, owner, shape},
                                          chunks_));
    }
    return {};
  }

  void add_digests_of_part() {
    if (part_->digest_tensors.empty()) return;
    plan_.tensor_digests.resize(description_.catalog.tensors.size());
    for (size_t i = 0; i < part_->digest_tensors.size(); ++i)
      plan_.tensor_digests[part_->digest_tensors[i]] = part_->tensor_digests[i];
  }

  void add_box(Box box, size_t piece) {
    if (!box_is_empty(box)) chunks_.push_back({std::move(box), static_cast<uint32_t>(piece), 0});
  }

  Status add_objects() {
    const Catalog& from = description_.catalog;
    // A description with rank_local objects comes with a part, and that with their sizes.
    std::span<const uint64_t> sizes;
    if (part_ != nullptr) sizes = part_->object_sizes;
    size_t local = 0;
    for (size_t i = 0; i < from.objects.size(); ++i) {
      ObjectRecord record = from.objects[i];
      if (record.kind == EntryKind::kRankLocal) {
        record.rank = plan_.rank;
        record.size_bytes = sizes[local++];
      }
      SHW_RETURN_IF_ERROR(CatalogBuilder(&plan_.catalog)
                              .add_object(record, from.object_name(i), from.texts.at(record.path),
                                          from.texts.at(record.content_type)));
    }
    return {};
  }

  const SymbolicDescription& description_;
  const SymbolicPart* part_;
  LocalSavePlan plan_;
  std::vector<CatalogBuilder::Chunk> chunks_;
};

}  // namespace

Result<LocalSavePlan> expand_local_plan(const RankDescriptions& ranks, int32_t rank) {
  return LocalExpansion(ranks.of(rank), ranks.part_of(rank), {rank, ranks.rank_count()}).run();
}

Result<LocalSavePlan> expand_local_plan(const LocalSymbolicPlan& plan) {
  return LocalExpansion(plan.description, &plan.part, {plan.part.rank, plan.part.world_size}).run();
}

}  // namespace shardwright::plan

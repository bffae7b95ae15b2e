// SPDX-License-Identifier: Apache-2.0
//
// Describes every rank of a job. Nothing but the boxes of a rank differs from what make_local_plan
// does with its state; a test compares the bytes of both.
#include <algorithm>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/estimate/estimate_internal.h"
#include "core/plan/digest.h"
#include "core/plan/save/local_plan.h"

namespace shardwright::estimate::internal {
namespace {

using plan::Catalog;
using plan::CatalogBuilder;
using plan::ObjectRecord;

class LocalPlanning {
 public:
  LocalPlanning(const JobDescription& job, const SaveRules& rules) : job_(job), cells_(job) {
    const std::string text = save_rules_text(rules);
    const plan::Digest128 digest = plan::options_text_digest(text);
    made_.locals.resize(static_cast<size_t>(job.rank_count));
    made_.held_bytes.assign(made_.locals.size(), 0);
    for (size_t r = 0; r < made_.locals.size(); ++r) {
      made_.locals[r].rank = static_cast<int32_t>(r);
      made_.locals[r].world_size = job.rank_count;
      made_.locals[r].options_text = text;
      made_.locals[r].options_digest = digest;
    }
  }

  Result<JobPlans> run() && {
    reserve();
    for (const JobTensor& tensor : job_.tensors) SHW_RETURN_IF_ERROR(add_tensor(tensor));
    for (const JobObject& object : job_.objects) SHW_RETURN_IF_ERROR(add_object(object));
    return std::move(made_);
  }

 private:
  // What the catalogs of a layout's ranks will hold.
  struct Room {
    size_t tensors = 0;
    size_t texts = 0;
    size_t text_bytes = 0;
    size_t extents = 0;
  };

  // Catalogs that grow by doubling would take twice the memory, and here are as many as ranks.
  void reserve() {
    std::vector<Room> by_layout(job_.layouts.size());
    for (const JobTensor& tensor : job_.tensors) {
      if (tensor.layout == kHeldByBoxes) continue;
      Room& room = by_layout[tensor.layout];
      ++room.tensors;
      ++room.texts;
      room.text_bytes += tensor.name.size();
      room.extents += tensor.shape.size();
    }
    for (const JobObject& object : job_.objects) {
      Room& room = by_layout[object.layout];
      room.texts += 2;
      room.text_bytes += object.name.size() + kJobObjectType.size();
    }
    std::vector<Room> by_rank(made_.locals.size());
    for (size_t l = 0; l < by_layout.size(); ++l) {
      for (const int32_t rank : layout_ranks(*job_.layouts[l].layout)) {
        Room& room = by_rank[static_cast<size_t>(rank)];
        room.tensors += by_layout[l].tensors;
        room.texts += by_layout[l].texts;
        room.text_bytes += by_layout[l].text_bytes;
        room.extents += by_layout[l].extents;
      }
    }
    for (size_t r = 0; r < by_rank.size(); ++r) {
      Catalog& catalog = made_.locals[r].catalog;
      catalog.texts.reserve(by_rank[r].texts + 1, by_rank[r].text_bytes);
      catalog.tensors.reserve(by_rank[r].tensors);
      catalog.boxes.reserve(by_rank[r].tensors);
      catalog.shapes.reserve(by_rank[r].extents);
    }
  }

  Status add_tensor(const JobTensor& tensor) {
    SHW_ASSIGN_OR_RETURN(const HeldCells* cells, cells_.of(tensor));
    pieces_ += std::max(cells->ranks.size(), cells->cells.size());
    if (pieces_ > kMaxSimulatedPieces) return too_many_pieces();
    CatalogBuilder::Tensor record;
    record.name = tensor.name;
    record.dtype = tensor.dtype;
    record.kind = tensor.kind;
    record.shape = tensor.shape;
    const bool own = tensor.kind == EntryKind::kRankLocal;
    for (size_t i = 0; i < cells->ranks.size(); ++i) {
      const auto rank = static_cast<size_t>(cells->ranks[i]);
      record.rank = own ? cells->ranks[i] : -1;
      chunks_.clear();
      for (const uint32_t cell : cells->of(i)) {
        chunks_.push_back({cells->boxes[cell], static_cast<uint32_t>(chunks_.size()), 0});
        made_.held_bytes[rank] += box_bytes(tensor.dtype, cells->boxes[cell]);
      }
      SHW_RETURN_IF_ERROR(CatalogBuilder(&made_.locals[rank].catalog).add_tensor(record, chunks_));
    }
    return {};
  }

  Status add_object(const JobObject& object) {
    ObjectRecord record;
    record.kind = object.kind;
    record.size_bytes = object.size_bytes;
    for (const int32_t rank : layout_ranks(*job_.layouts[object.layout].layout)) {
      record.rank = object.kind == EntryKind::kRankLocal ? rank : -1;
      made_.held_bytes[static_cast<size_t>(rank)] += object.size_bytes;
      SHW_RETURN_IF_ERROR(CatalogBuilder(&made_.locals[static_cast<size_t>(rank)].catalog)
                              .add_object(record, object.name, "", kJobObjectType));
    }
    return {};
  }

  const JobDescription& job_;
  HeldCellsCache cells_;
  JobPlans made_;
  uint64_t pieces_ = 0;
  std::vector<CatalogBuilder::Chunk> chunks_;
};

}  // namespace

Status too_many_pieces() {
  return resource_exhausted(
      "simulated_pieces",
      fmt::format("the ranks hold more than {} boxes; simulate a smaller job or fewer tensors",
                  kMaxSimulatedPieces));
}

Result<JobPlans> local_plans_of(const JobDescription& job, const SaveRules& rules) {
  return LocalPlanning(job, rules).run();
}

}  // namespace shardwright::estimate::internal

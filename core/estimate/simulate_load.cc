// SPDX-License-Identifier: Apache-2.0
//
// Gives each rank of a job the state that it would have, without memory behind it, and asks the
// planner what that state would read. Holders are found tensor by tensor, states are made rank by
// rank, so that one is there at a time.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/estimate/estimate_internal.h"
#include "core/plan/load/catalog_index.h"
#include "core/plan/load/make_load_plan.h"
#include "core/plan/load_plan.h"

namespace shardwright::estimate {
namespace {

using plan::CatalogIndex;

using internal::HeldCells;

// The boxes of one rank, back to back in a local tensor of one dimension.
class LocalBoxes {
 public:
  // Borrows from cells and from this until the next call. RESOURCE_EXHAUSTED for boxes that have
  // more elements in all than can be counted.
  Result<TensorRef> lay(const JobTensor& tensor, const HeldCells& cells, size_t holder) {
    const size_t dimensions = tensor.shape.size();
    offsets_.clear();
    sizes_.clear();
    starts_.clear();
    elements_ = 0;
    for (const uint32_t cell : cells.of(holder)) {
      const Box& box = cells.boxes[cell];
      offsets_.insert(offsets_.end(), box.offsets.begin(), box.offsets.end());
      sizes_.insert(sizes_.end(), box.sizes.begin(), box.sizes.end());
      starts_.push_back(elements_);
      if (!checked_add(elements_, box_element_count(box), &elements_)) {
        return resource_exhausted("elements", fmt::format("the boxes of '{}' have more than {} "
                                                          "elements",
                                                          tensor.name, INT64_MAX));
      }
    }
    TensorRef made;
    made.name = tensor.name;
    made.kind = tensor.kind;
    made.local.data = &nothing_;
    made.local.dtype = tensor.dtype;
    made.local.shape = {&elements_, 1};
    made.global_shape = tensor.shape;
    made.pieces =
        PieceList(dimensions, starts_.size(), offsets_.data(), sizes_.data(), starts_.data());
    return made;
  }

 private:
  std::vector<int64_t> offsets_;
  std::vector<int64_t> sizes_;
  std::vector<int64_t> starts_;
  int64_t elements_ = 0;
  std::byte nothing_{};  // planning looks at no element
};

class LoadSimulation {
 public:
  LoadSimulation(const StoredCheckpoint& stored, const JobDescription& wanted)
      : stored_(stored),
        index_(stored.catalog),
        wanted_(wanted),
        cells_(wanted),
        tensors_(static_cast<size_t>(wanted.rank_count)),
        objects_(static_cast<size_t>(wanted.rank_count)) {}

  Status run(const TakeLoadPlan& take) {
    SHW_RETURN_IF_ERROR(find_holders());
    for (int32_t rank = 0; rank < wanted_.rank_count; ++rank) {
      State state;
      SHW_RETURN_IF_ERROR(fill(rank, &state));
      SHW_ASSIGN_OR_RETURN(LoadPlan plan, make_load_plan(state, index_, {}, rank));
      plan.generation = stored_.generation;
      SHW_RETURN_IF_ERROR(take(std::move(plan)));
    }
    return {};
  }

 private:
  // A tensor and the place of the rank among its holders.
  struct Held {
    uint32_t tensor = 0;
    uint32_t holder = 0;
  };

  Status find_holders() {
    uint64_t entries = 0;
    for (size_t t = 0; t < wanted_.tensors.size(); ++t) {
      SHW_ASSIGN_OR_RETURN(const HeldCells* cells, cells_of(t));
      entries += cells->ranks.size();
      if (entries > kMaxSimulatedPieces) {
        return resource_exhausted(
            "simulated_pieces",
            fmt::format("the ranks want more than {} tensors", kMaxSimulatedPieces));
      }
      for (size_t i = 0; i < cells->ranks.size(); ++i) {
        tensors_[static_cast<size_t>(cells->ranks[i])].push_back(
            {static_cast<uint32_t>(t), static_cast<uint32_t>(i)});
      }
    }
    for (size_t i = 0; i < wanted_.objects.size(); ++i) {
      for (const int32_t rank : layout_ranks(*wanted_.layouts[wanted_.objects[i].layout].layout))
        objects_[static_cast<size_t>(rank)].push_back(static_cast<uint32_t>(i));
    }
    return {};
  }

  // Cells of boxes are kept here, those of layouts in the cache.
  Result<const HeldCells*> cells_of(size_t tensor) {
    const JobTensor& wanted = wanted_.tensors[tensor];
    if (wanted.layout != kHeldByBoxes) return cells_.of(wanted);
    auto known = boxes_.find(tensor);
    if (known == boxes_.end()) {
      SHW_ASSIGN_OR_RETURN(const HeldCells* made, cells_.of(wanted));
      known = boxes_.emplace(tensor, *made).first;
    }
    return &known->second;
  }

  Status fill(int32_t rank, State* state) {
    const std::vector<Held>& held = tensors_[static_cast<size_t>(rank)];
    size_t name_bytes = 0;
    for (const Held& each : held) name_bytes += wanted_.tensors[each.tensor].name.size();
    TensorAdd add(state, held.size(), name_bytes);
    for (const Held& each : held) {
      const JobTensor& tensor = wanted_.tensors[each.tensor];
      SHW_ASSIGN_OR_RETURN(const HeldCells* cells, cells_of(each.tensor));
      SHW_ASSIGN_OR_RETURN(const TensorRef local, local_.lay(tensor, *cells, each.holder));
      SHW_RETURN_IF_ERROR(add.add(local));
    }
    SHW_RETURN_IF_ERROR(add.commit());
    std::vector<ObjectEntry> objects;
    for (const uint32_t number : objects_[static_cast<size_t>(rank)]) {
      ObjectEntry object;
      object.name = wanted_.objects[number].name;
      object.kind = wanted_.objects[number].kind;
      object.content_type = kJobObjectType;
      objects.push_back(std::move(object));
    }
    return state->add_objects(std::move(objects));
  }

  const StoredCheckpoint& stored_;
  const CatalogIndex index_;
  const JobDescription& wanted_;
  internal::HeldCellsCache cells_;
  std::map<size_t, HeldCells> boxes_;
  std::vector<std::vector<Held>> tensors_;      // per rank, in the order of the job
  std::vector<std::vector<uint32_t>> objects_;  // the same
  LocalBoxes local_;
};

}  // namespace

Status simulate_load(const StoredCheckpoint& stored, const JobDescription& wanted,
                     const TakeLoadPlan& take) {
  return LoadSimulation(stored, wanted).run(take);
}

}  // namespace shardwright::estimate

// SPDX-License-Identifier: Apache-2.0
//
// A rank's signature is what decides over its description: the cuts of each layout as it sees them,
// and which layouts it is in.
#include "core/job_description/describe_ranks.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/base/text.h"
#include "core/plan/describe/builder.h"
#include "core/plan/rank_plans.h"

namespace shardwright::job_description {
namespace {

using plan::Description;
using plan::DescriptionBuilder;
using plan::LocalPart;
using plan::LocalPlan;
using plan::RankPlans;

template <typename Value>
void append_bytes(std::string* text, std::span<const Value> values) {
  text->append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

class RankDescriber {
 public:
  RankDescriber(const JobDescription& job, const std::string& agreement)
      : job_(job), agreement_(agreement) {
    for (const JobTensor& tensor : job.tensors) {
      if (tensor.layout != kHeldByBoxes) uses_.emplace(tensor.layout, tensor.shape.size());
    }
    index_boxes();
    for (const JobObject& object : job.objects) uses_.emplace(object.layout, kNotCut);
  }

  Result<RankPlans> run() && {
    for (int32_t rank = 0; rank < job_.rank_count; ++rank) SHW_RETURN_IF_ERROR(add_rank(rank));
    return make_rank_plans(digests_, std::move(descriptions_), std::move(parts_));
  }

 private:
  static constexpr size_t kNotCut = ~size_t{0};
  // A layout, and the dimensions of what it is used for; kNotCut: only its ranks count.
  using Use = std::pair<uint32_t, size_t>;

  // A description that a rank made, and what other ranks with its signature add.
  struct Known {
    Digest128 digest{};
    LocalPart part;
  };

  // One box that a rank holds: numbers of the tensor and of the box.
  struct Held {
    uint32_t tensor = 0;
    uint32_t box = 0;
  };

  void index_boxes() {
    held_.resize(static_cast<size_t>(job_.rank_count));
    for (uint32_t t = 0; t < job_.tensors.size(); ++t) {
      const std::vector<HeldBox>& boxes = job_.tensors[t].boxes;
      for (uint32_t b = 0; b < boxes.size(); ++b) {
        for (const int32_t rank : boxes[b].ranks)
          held_[static_cast<size_t>(rank)].push_back({t, b});
      }
    }
  }

  const Layout& layout(uint32_t number) const { return *job_.layouts[number].layout; }

  Status add_rank(int32_t rank) {
    SHW_ASSIGN_OR_RETURN(const bool ruled, sign(rank));
    if (ruled) {
      const auto known = known_.find(signature_);
      if (known != known_.end()) {
        digests_.push_back(known->second.digest);
        parts_.push_back(known->second.part);
        parts_.back().rank = rank;
        return {};
      }
    }
    SHW_ASSIGN_OR_RETURN(LocalPlan plan, describe(rank));
    const Digest128 digest = plan.part.description_digest;
    // Boxes are a rank's own.
    if (ruled && plan.part.lists.empty()) known_.emplace(signature_, Known{digest, plan.part});
    if (described_.insert(to_hex(digest)).second)
      descriptions_.push_back(std::move(plan.description));
    digests_.push_back(digest);
    parts_.push_back(std::move(plan.part));
    return {};
  }

  // Sets signature_; false when the rank's boxes are not all ruled by it.
  Result<bool> sign(int32_t rank) {
    signature_.clear();
    bool ruled = held_[static_cast<size_t>(rank)].empty();
    for (const auto& [number, dimensions] : uses_) {
      const bool held = layout(number).contains(rank);
      signature_ += held ? 'h' : '-';
      if (!held || dimensions == kNotCut) continue;
      ruled &= !layout(number).is_strided() && !layout(number).is_flat();
      SHW_ASSIGN_OR_RETURN(const auto axes, shard_axes_of(layout(number), dimensions, rank));
      if (axes.has_value()) append_bytes(&signature_, std::span<const ShardAxis>(*axes));
    }
    return ruled;
  }

  Result<LocalPlan> describe(int32_t rank) const {
    SHW_ASSIGN_OR_RETURN(DescriptionBuilder builder,
                         DescriptionBuilder::create({}, agreement_, {rank, job_.rank_count}));
    const std::vector<Held>& held = held_[static_cast<size_t>(rank)];
    auto next = held.begin();
    std::vector<Box> boxes;
    for (uint32_t t = 0; t < job_.tensors.size(); ++t) {
      const JobTensor& tensor = job_.tensors[t];
      const DescriptionBuilder::Tensor record{tensor.name, "", tensor.dtype, tensor.kind,
                                              tensor.shape};
      if (tensor.layout != kHeldByBoxes) {
        if (layout(tensor.layout).contains(rank))
          SHW_RETURN_IF_ERROR(builder.add_sharded(record, layout(tensor.layout)));
        continue;
      }
      boxes.clear();
      for (; next != held.end() && next->tensor == t; ++next)
        boxes.push_back(tensor.boxes[next->box].box);
      if (!boxes.empty()) SHW_RETURN_IF_ERROR(builder.add_boxes(record, boxes));
    }
    for (const JobObject& object : job_.objects) {
      if (!layout(object.layout).contains(rank)) continue;
      SHW_RETURN_IF_ERROR(
          builder.add_object({object.name, "", kJobObjectType, object.kind, object.size_bytes}));
    }
    return builder.finish();
  }

  const JobDescription& job_;
  const std::string& agreement_;
  std::set<Use> uses_;
  std::vector<std::vector<Held>> held_;  // of each rank, by tensor
  std::string signature_;                // of the rank at hand
  std::unordered_map<std::string, Known> known_;
  std::unordered_set<std::string> described_;
  std::vector<Digest128> digests_;         // one per rank
  std::vector<Description> descriptions_;  // distinct, by their first rank
  std::vector<LocalPart> parts_;
};

}  // namespace

Result<RankPlans> describe_ranks(const JobDescription& job, const std::string& agreement) {
  return RankDescriber(job, agreement).run();
}

}  // namespace shardwright::job_description

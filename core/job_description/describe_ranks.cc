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
#include "core/plan/symbolic/builder.h"

namespace shardwright::job_description {
namespace {

using plan::LocalSymbolicPlan;
using plan::RankDescriptions;
using plan::shard_axes_of;
using plan::ShardAxis;
using plan::SymbolicBuilder;
using plan::SymbolicDescription;
using plan::SymbolicPart;

template <typename Value>
void append_bytes(std::string* text, std::span<const Value> values) {
  text->append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

class RankDescriber {
 public:
  RankDescriber(const JobDescription& job, const std::string& agreement)
      : job_(job), agreement_(agreement) {
    for (const JobTensor& tensor : job.tensors) uses_.emplace(tensor.layout, tensor.shape.size());
    for (const JobObject& object : job.objects) uses_.emplace(object.layout, kNotCut);
  }

  Result<RankDescriptions> run() && {
    for (int32_t rank = 0; rank < job_.rank_count; ++rank) SHW_RETURN_IF_ERROR(add_rank(rank));
    return make_rank_descriptions(digests_, std::move(descriptions_), std::move(parts_));
  }

 private:
  static constexpr size_t kNotCut = ~size_t{0};
  // A layout, and the dimensions of what it is used for; kNotCut: only its ranks count.
  using Use = std::pair<uint32_t, size_t>;

  // A description that a rank made, and what other ranks with its signature add.
  struct Known {
    plan::Digest128 digest{};
    SymbolicPart part;
  };

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
    SHW_ASSIGN_OR_RETURN(LocalSymbolicPlan plan, describe(rank));
    const plan::Digest128 digest = plan.part.description_digest;
    // Boxes are a rank's own.
    if (ruled && plan.part.box_counts.empty()) known_.emplace(signature_, Known{digest, plan.part});
    if (described_.insert(to_hex(digest)).second)
      descriptions_.push_back(std::move(plan.description));
    digests_.push_back(digest);
    parts_.push_back(std::move(plan.part));
    return {};
  }

  // Sets signature_; false when the rank's boxes are not all ruled by it.
  Result<bool> sign(int32_t rank) {
    signature_.clear();
    bool ruled = true;
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

  Result<LocalSymbolicPlan> describe(int32_t rank) const {
    SHW_ASSIGN_OR_RETURN(SymbolicBuilder builder,
                         SymbolicBuilder::create({}, agreement_, {rank, job_.rank_count}));
    for (const JobTensor& tensor : job_.tensors) {
      if (!layout(tensor.layout).contains(rank)) continue;
      SHW_RETURN_IF_ERROR(builder.add_sharded(
          {tensor.name, "", tensor.dtype, tensor.kind, tensor.shape}, layout(tensor.layout)));
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
  std::string signature_;  // of the rank at hand
  std::unordered_map<std::string, Known> known_;
  std::unordered_set<std::string> described_;
  std::vector<plan::Digest128> digests_;           // one per rank
  std::vector<SymbolicDescription> descriptions_;  // distinct, by their first rank
  std::vector<SymbolicPart> parts_;
};

}  // namespace

bool has_layouts_only(const JobDescription& job) {
  return std::ranges::none_of(
      job.tensors, [](const JobTensor& tensor) { return tensor.layout == kHeldByBoxes; });
}

Result<RankDescriptions> describe_ranks(const JobDescription& job, const std::string& agreement) {
  return RankDescriber(job, agreement).run();
}

}  // namespace shardwright::job_description

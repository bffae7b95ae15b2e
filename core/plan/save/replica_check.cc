// SPDX-License-Identifier: Apache-2.0
//
// Replicas are stored once, so they must be equal: content digests and object sizes of one name
// agree on all holders, of a sharded tensor on all that hold the same boxes.
#include <algorithm>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/plan/save/merge_internal.h"
#include "core/plan/save/replica_contents_internal.h"

namespace shardwright::plan::internal {
namespace {

// Replicas whose content digests, sizes or content types (`property`) differ.
Status replicas_differ(std::string_view name, std::string_view property, uint32_t first_rank,
                       uint32_t other_rank) {
  return invalid_argument(
             fmt::format(
                 "'{}' is held by several ranks, but its {} differs between rank {} and rank {}; "
                 "declare it rank_local (kind pattern) or save with verify_replicas=off, which "
                 "keeps one of them",
                 escape_text(name), property, first_rank, other_rank))
      .with_detail("tensor", name)
      .with_detail("rank", std::to_string(first_rank))
      .with_detail("rank", std::to_string(other_rank))
      .with_detail("hint", "declare it rank_local (kind pattern) or verify_replicas=off");
}

class ReplicaCheck {
 public:
  ReplicaCheck(const RankPlans& ranks, const MergePolicy& policy)
      : ranks_(ranks), policy_(policy), contents_(ranks, ContentsOf::kDistinct) {}

  Status run(const MergedEntries& merged) {
    const bool any = std::ranges::any_of(ranks_.parts, has_digests<PartView>) ||
                     std::ranges::any_of(ranks_.descriptions, has_digests<Description>);
    for (size_t g = 0; any && g < merged.tensors.size(); ++g) {
      const std::span<const Member> members = merged.tensors.of(g);
      SHW_RETURN_IF_ERROR(check_contents(entries(members[0]).tensor_name(members[0].entry),
                                         contents_.of_tensor(members)));
    }
    for (size_t g = 0; g < merged.objects.size(); ++g)
      SHW_RETURN_IF_ERROR(check_object(merged.objects.of(g)));
    return {};
  }

 private:
  template <typename Given>
  static bool has_digests(const Given& given) {
    return !given.tensor_digests.empty();
  }

  const Catalog& entries(const Member& member) const {
    return ranks_.descriptions[member.description].catalog;
  }
  uint32_t rank(const Member& member) const { return ranks_.first_ranks[member.description]; }

  // Sizes of 0 are unknown in descriptions: then the known ones must agree.
  Status check_object(std::span<const Member> members) {
    const Catalog& first = entries(members[0]);
    const std::string_view name = first.object_name(members[0].entry);
    const Member* sized = nullptr;
    for (const Member& member : members) {
      const ObjectRecord& record = entries(member).objects[member.entry];
      if (!policy_.described || record.size_bytes != 0) {
        if (sized == nullptr) sized = &member;
        if (record.size_bytes != entries(*sized).objects[sized->entry].size_bytes)
          return replicas_differ(name, "size", rank(*sized), rank(member));
      }
      if (entries(member).texts.at(record.content_type) !=
          first.texts.at(first.objects[members[0].entry].content_type))
        return replicas_differ(name, "content type", rank(members[0]), rank(member));
    }
    return check_contents(name, contents_.of_object(members));
  }

  static Status check_contents(std::string_view name, std::span<const HeldContent> held) {
    const HeldContent* first = nullptr;
    for (const HeldContent& each : held) {
      if (first == nullptr || first->boxes != each.boxes) {
        first = &each;
      } else if (first->content != each.content) {
        return replicas_differ(name, "content", first->rank, each.rank);
      }
    }
    return {};
  }

  const RankPlans& ranks_;
  const MergePolicy& policy_;
  RankContents contents_;
};

}  // namespace

Status check_replicas(const RankPlans& ranks, const MergedEntries& merged, VerifyReplicas rule,
                      const MergePolicy& policy) {
  if (rule == VerifyReplicas::kOff) return {};
  return ReplicaCheck(ranks, policy).run(merged);
}

}  // namespace shardwright::plan::internal

// SPDX-License-Identifier: Apache-2.0
//
// Replicas are stored once, so they must be equal: content digests and object sizes of one name
// agree on all holders, of a sharded tensor on all that hold the same boxes.
#include <algorithm>

#include "core/plan/save/conflicts_internal.h"
#include "core/plan/save/merge_internal.h"
#include "core/plan/save/replica_contents_internal.h"

namespace shardwright::plan::internal {
namespace {

class ReplicaCheck {
 public:
  ReplicaCheck(const RankPlans& ranks, const MergePolicy& policy)
      : ranks_(ranks), policy_(policy), contents_(ranks) {}

  Status run(const MergedEntries& merged) {
    const bool any = contents_.any_of_ranks() ||
                     std::ranges::any_of(ranks_.descriptions, [](const Description& each) {
                       return !each.tensor_digests.empty();
                     });
    for (size_t g = 0; any && g < merged.tensors.size(); ++g)
      SHW_RETURN_IF_ERROR(check_tensor(merged.tensors.of(g)));
    for (size_t g = 0; g < merged.objects.size(); ++g)
      SHW_RETURN_IF_ERROR(check_object(merged.objects.of(g)));
    return {};
  }

 private:
  using Digests = std::vector<Digest128> Description::*;

  const Catalog& entries(const Member& member) const {
    return ranks_.descriptions[member.description].catalog;
  }
  int32_t rank(const Member& member) const {
    return static_cast<int32_t>(ranks_.first_ranks[member.description]);
  }

  Status check_tensor(std::span<const Member> members) {
    const Catalog& first = entries(members[0]);
    const bool sharded = first.tensors[members[0].entry].kind == EntryKind::kSharded;
    if (sharded && element_count_of(first.shape(members[0].entry)) == 0) return {};
    const std::string_view name = first.tensor_name(members[0].entry);
    if (!contents_.any_of_ranks())
      return check_descriptions(members, &Description::tensor_digests, name);
    contents_.collect_tensor(members, &held_);
    return check_contents(name, held_);
  }

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
    if (!contents_.any_of_ranks())
      return check_descriptions(members, &Description::object_digests, name);
    contents_.collect_object(members, &held_);
    return check_contents(name, held_);
  }

  // When all contents stand in descriptions.
  Status check_descriptions(std::span<const Member> members, Digests column,
                            std::string_view name) const {
    const Digest128* expected = nullptr;
    int32_t expected_rank = 0;
    for (const Member& member : members) {
      const std::vector<Digest128>& digests = ranks_.descriptions[member.description].*column;
      if (digests.empty() || digests[member.entry] == Digest128{}) continue;
      if (expected == nullptr) {
        expected = &digests[member.entry];
        expected_rank = rank(member);
      } else if (digests[member.entry] != *expected) {
        return replicas_differ(name, "content", expected_rank, rank(member));
      }
    }
    return {};
  }

  const RankPlans& ranks_;
  const MergePolicy& policy_;
  RankContents contents_;
  std::vector<HeldContent> held_;
};

}  // namespace

Status check_replicas(const RankPlans& ranks, const MergedEntries& merged, VerifyReplicas rule,
                      const MergePolicy& policy) {
  if (rule == VerifyReplicas::kOff) return {};
  return ReplicaCheck(ranks, policy).run(merged);
}

}  // namespace shardwright::plan::internal

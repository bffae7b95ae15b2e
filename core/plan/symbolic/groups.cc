// SPDX-License-Identifier: Apache-2.0
//
// The groups of save/group_entries.cc over one view per description, and the check of replicas.
#include "core/plan/symbolic/groups_internal.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/plan/save/conflicts_internal.h"
#include "core/plan/save/merge_internal.h"
#include "core/plan/symbolic/rank_contents_internal.h"

namespace shardwright::plan::internal {
namespace {

// The groups that belong to no single rank, numbered anew. records: those of a description.
template <typename RecordsOf>
EntryGroups shared_groups(const RankDescriptions& ranks, const Groups& named,
                          const RecordsOf& records_of) {
  EntryGroups shared;
  shared.begins.push_back(0);
  for (const SymbolicDescription& description : ranks.descriptions)
    shared.group_of.emplace_back(records_of(description).size(), kLocalEntry);
  for (size_t g = 0; g < named.size(); ++g) {
    const std::span<const Member> members = named.of(g);
    const SymbolicDescription& first = ranks.descriptions[members[0].rank];
    if (records_of(first)[members[0].entry].kind == EntryKind::kRankLocal) continue;
    for (const Member& member : members) {
      shared.group_of[member.rank][member.entry] = static_cast<uint32_t>(shared.size());
      shared.members.push_back({member.rank, member.entry});
    }
    shared.begins.push_back(shared.members.size());
  }
  return shared;
}

// Each description as its first rank lists it.
std::vector<LocalView> description_views(const RankDescriptions& ranks,
                                         std::span<const int32_t> first_ranks) {
  std::vector<LocalView> views(ranks.descriptions.size());
  for (size_t d = 0; d < views.size(); ++d) {
    views[d].rank = first_ranks[d];
    views[d].catalog = view_of(ranks.descriptions[d].catalog);
    views[d].table = static_cast<uint32_t>(d);
  }
  return views;
}

class ReplicaCheck {
 public:
  ReplicaCheck(const RankDescriptions& ranks, const PartIndex& parts,
               const MergedDescriptions& merged)
      : ranks_(ranks), merged_(merged), contents_(ranks, parts) {}

  Status run() {
    for (size_t g = 0; g < merged_.tensors.size(); ++g)
      SHW_RETURN_IF_ERROR(check_tensor(merged_.tensors.of(g)));
    for (size_t g = 0; g < merged_.objects.size(); ++g)
      SHW_RETURN_IF_ERROR(check_object(merged_.objects.of(g)));
    return {};
  }

 private:
  int32_t rank(const GroupMember& member) const { return merged_.first_ranks[member.description]; }
  std::string_view tensor_name(const GroupMember& member) const {
    return ranks_.descriptions[member.description].catalog.tensor_name(member.entry);
  }

  Status check_tensor(std::span<const GroupMember> members) {
    const std::string_view name = tensor_name(members[0]);
    const Catalog& catalog = ranks_.descriptions[members[0].description].catalog;
    const bool sharded = catalog.tensors[members[0].entry].kind == EntryKind::kSharded;
    if (sharded && element_count_of(catalog.shape(members[0].entry)) == 0) return {};
    if (!contents_.any_in_parts())
      return check_digests(members, &SymbolicDescription::tensor_digests, name);
    contents_.collect_tensor(members, &held_);
    return check_contents(name, held_);
  }

  Status check_digests(std::span<const GroupMember> members,
                       std::vector<Digest128> SymbolicDescription::* column,
                       std::string_view name) const {
    const Digest128* expected = nullptr;
    int32_t expected_rank = 0;
    for (const GroupMember& member : members) {
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

  Status check_object(std::span<const GroupMember> members) const {
    const Catalog& catalog = ranks_.descriptions[members[0].description].catalog;
    const ObjectRecord& first = catalog.objects[members[0].entry];
    const std::string_view name = catalog.texts.at(first.name);
    for (const GroupMember& member : members) {
      const Catalog& other_catalog = ranks_.descriptions[member.description].catalog;
      const ObjectRecord& other = other_catalog.objects[member.entry];
      if (other.size_bytes != first.size_bytes)
        return replicas_differ(name, "size", rank(members[0]), rank(member));
      if (other_catalog.texts.at(other.content_type) != catalog.texts.at(first.content_type))
        return replicas_differ(name, "content type", rank(members[0]), rank(member));
    }
    return check_digests(members, &SymbolicDescription::object_digests, name);
  }

  const RankDescriptions& ranks_;
  const MergedDescriptions& merged_;
  RankContents contents_;
  std::vector<HeldContent> held_;
};

}  // namespace

Result<MergedDescriptions> merge_descriptions(const RankDescriptions& ranks, const PartIndex& parts,
                                              const SaveRules& rules) {
  MergedDescriptions merged;
  merged.first_ranks.assign(ranks.descriptions.size(), -1);
  for (int32_t r = ranks.rank_count(); r-- > 0;)
    merged.first_ranks[ranks.description_of_rank[static_cast<size_t>(r)]] = r;
  const std::vector<LocalView> views = description_views(ranks, merged.first_ranks);
  std::vector<const LocalView*> sources;
  sources.reserve(views.size());
  for (const LocalView& view : views) sources.push_back(&view);
  SHW_ASSIGN_OR_RETURN(const NamedGroups named, group_entries(sources, sources));
  merged.tensors = shared_groups(ranks, named.tensors,
                                 [](const SymbolicDescription& description) -> const auto& {
                                   return description.catalog.tensors;
                                 });
  merged.objects = shared_groups(ranks, named.objects,
                                 [](const SymbolicDescription& description) -> const auto& {
                                   return description.catalog.objects;
                                 });
  if (rules.verify_replicas != VerifyReplicas::kOff)
    SHW_RETURN_IF_ERROR(ReplicaCheck(ranks, parts, merged).run());
  return merged;
}

}  // namespace shardwright::plan::internal

// SPDX-License-Identifier: Apache-2.0
//
// Grouping by name. Descriptions mostly list the same names in the same order, so the name after the
// last one found is tried before the hash table.
#include "core/plan/symbolic/groups_internal.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "core/base/hash_index.h"
#include "core/plan/save/conflicts_internal.h"
#include "core/plan/symbolic/rank_contents_internal.h"

namespace shardwright::plan::internal {
namespace {

struct TensorEntries {
  static constexpr std::string_view kNoun = "tensor";
  static const std::vector<TensorRecord>& records(const SymbolicDescription& description) {
    return description.catalog.tensors;
  }
  static EntryFacts facts(const Catalog& catalog, uint32_t entry, int32_t rank) {
    const TensorRecord& record = catalog.tensors[entry];
    return {rank, record.kind, catalog.texts.at(record.path), record.dtype, catalog.shape(entry)};
  }
};

struct ObjectEntries {
  static constexpr std::string_view kNoun = "object";
  static const std::vector<ObjectRecord>& records(const SymbolicDescription& description) {
    return description.catalog.objects;
  }
  static EntryFacts facts(const Catalog& catalog, uint32_t entry, int32_t rank) {
    const ObjectRecord& record = catalog.objects[entry];
    return {rank, record.kind, catalog.texts.at(record.path), DType::kInvalid, {}};
  }
};

template <typename Column>
class Grouping {
 public:
  Grouping(const RankDescriptions& ranks, const std::vector<int32_t>& first_ranks)
      : ranks_(ranks), first_ranks_(first_ranks) {}

  Result<EntryGroups> run() {
    EntryGroups groups;
    groups.group_of.resize(ranks_.descriptions.size());
    uint32_t group_count = 0;
    for (uint32_t d = 0; d < ranks_.descriptions.size(); ++d) {
      const auto& records = Column::records(ranks_.descriptions[d]);
      std::vector<uint32_t>& group_of = groups.group_of[d];
      group_of.resize(records.size());
      size_t expected = 0;
      for (uint32_t i = 0; i < records.size(); ++i) {
        const bool local = records[i].kind == EntryKind::kRankLocal;
        const size_t found = find_or_add({d, i}, expected);
        Named& named = names_[found];
        SHW_RETURN_IF_ERROR(check(named.first, {d, i}));
        if (!local && named.group == kLocalEntry) named.group = group_count++;
        group_of[i] = local ? kLocalEntry : named.group;
        expected = found + 1;
      }
    }
    scatter(group_count, &groups);
    return groups;
  }

  std::optional<size_t> named(std::string_view name) const {
    return index_.find(hash_text(name), [&](size_t i) { return name_at(i) == name; });
  }
  size_t name_count() const { return names_.size(); }
  GroupMember first(size_t name) const { return names_[name].first; }
  std::string_view name_at(size_t name) const { return name_of(names_[name].first); }

 private:
  struct Named {
    GroupMember first;
    uint32_t group = kLocalEntry;
  };

  std::string_view name_of(const GroupMember& member) const {
    const SymbolicDescription& description = ranks_.descriptions[member.description];
    return description.catalog.texts.at(Column::records(description)[member.entry].name);
  }

  size_t find_or_add(const GroupMember& member, size_t expected) {
    const std::string_view name = name_of(member);
    if (expected < names_.size() && name_at(expected) == name) return expected;
    const uint64_t hash = hash_text(name);
    const auto found = index_.find(hash, [&](size_t i) { return name_at(i) == name; });
    if (found.has_value()) return *found;
    names_.push_back({member, kLocalEntry});
    index_.reserve(names_.size(), [this](size_t i) { return hash_text(name_at(i)); });
    index_.insert(hash, names_.size() - 1);
    return names_.size() - 1;
  }

  Status check(const GroupMember& first, const GroupMember& other) const {
    if (first.description == other.description) return {};
    return check_same_entry(Column::kNoun, name_of(first), facts(first), facts(other));
  }
  EntryFacts facts(const GroupMember& member) const {
    return Column::facts(ranks_.descriptions[member.description].catalog, member.entry,
                         first_ranks_[member.description]);
  }

  // Counting sort of the members by group.
  void scatter(uint32_t group_count, EntryGroups* groups) const {
    groups->begins.assign(size_t{group_count} + 1, 0);
    for (const std::vector<uint32_t>& column : groups->group_of) {
      for (const uint32_t group : column) {
        if (group != kLocalEntry) ++groups->begins[group + 1];
      }
    }
    for (size_t g = 0; g < group_count; ++g) groups->begins[g + 1] += groups->begins[g];
    groups->members.resize(groups->begins[group_count]);
    std::vector<uint64_t> next(groups->begins.begin(), groups->begins.end());
    for (uint32_t d = 0; d < groups->group_of.size(); ++d) {
      for (uint32_t i = 0; i < groups->group_of[d].size(); ++i) {
        const uint32_t group = groups->group_of[d][i];
        if (group != kLocalEntry) groups->members[next[group]++] = {d, i};
      }
    }
  }

  const RankDescriptions& ranks_;
  const std::vector<int32_t>& first_ranks_;
  std::vector<Named> names_;
  HashIndex index_;
};

// A name is a tensor on all ranks that have it, or an object on all.
Status check_names_apart(const std::vector<int32_t>& first_ranks,
                         const Grouping<TensorEntries>& tensors,
                         const Grouping<ObjectEntries>& objects) {
  for (size_t i = 0; i < objects.name_count(); ++i) {
    const std::optional<size_t> tensor = tensors.named(objects.name_at(i));
    if (!tensor.has_value()) continue;
    return entry_conflict("entry", objects.name_at(i), "type",
                          {first_ranks[tensors.first(*tensor).description], "tensor"},
                          {first_ranks[objects.first(i).description], "object"});
  }
  return {};
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
  Grouping<TensorEntries> tensors(ranks, merged.first_ranks);
  Grouping<ObjectEntries> objects(ranks, merged.first_ranks);
  SHW_ASSIGN_OR_RETURN(merged.tensors, tensors.run());
  SHW_ASSIGN_OR_RETURN(merged.objects, objects.run());
  SHW_RETURN_IF_ERROR(check_names_apart(merged.first_ranks, tensors, objects));
  if (rules.verify_replicas != VerifyReplicas::kOff)
    SHW_RETURN_IF_ERROR(ReplicaCheck(ranks, parts, merged).run());
  return merged;
}

}  // namespace shardwright::plan::internal

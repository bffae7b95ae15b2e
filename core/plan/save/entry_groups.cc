// SPDX-License-Identifier: Apache-2.0
//
// Groups the entries of all descriptions by name and refuses groups whose members contradict each
// other. Descriptions mostly list the same names in the same order, so the name after the last one
// found is tried before the hash table.
#include <algorithm>
#include <optional>

#include "core/base/hash_index.h"
#include "core/plan/save/conflicts_internal.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {
namespace {

// Columns of tensors, as Grouping wants them.
struct TensorColumn {
  static constexpr std::string_view kNoun = "tensor";
  static std::span<const TensorRecord> records(const Catalog& entries) { return entries.tensors; }
  static EntryFacts facts(const Catalog& entries, uint32_t rank, uint32_t i) {
    const TensorRecord& record = entries.tensors[i];
    return {static_cast<int32_t>(rank), record.kind, entries.texts.at(record.path), record.dtype,
            entries.shape(i)};
  }
};

struct ObjectColumn {
  static constexpr std::string_view kNoun = "object";
  static std::span<const ObjectRecord> records(const Catalog& entries) { return entries.objects; }
  static EntryFacts facts(const Catalog& entries, uint32_t rank, uint32_t i) {
    const ObjectRecord& record = entries.objects[i];
    return {static_cast<int32_t>(rank),
            record.kind,
            entries.texts.at(record.path),
            DType::kInvalid,
            {}};
  }
};

template <typename Column>
class Grouping {
 public:
  explicit Grouping(const RankPlans& ranks) : ranks_(ranks) {}

  Result<EntryGroups> run() {
    std::vector<std::vector<uint32_t>> named(ranks_.descriptions.size());
    for (uint32_t d = 0; d < ranks_.descriptions.size(); ++d) {
      const size_t count = records(d).size();
      named[d].reserve(count);
      uint32_t expected = 0;
      for (uint32_t i = 0; i < count; ++i) {
        SHW_ASSIGN_OR_RETURN(const uint32_t name, add({d, i}, expected));
        named[d].push_back(name);
        expected = name + 1;
      }
    }
    return shared_groups(std::move(named));
  }

  // Number of the name, or nullopt.
  std::optional<size_t> find(std::string_view name) const {
    return index_.find(hash_text(name), [&](size_t i) { return name_of(firsts_[i]) == name; });
  }
  std::string_view name_of(size_t number) const { return name_of(firsts_[number]); }
  int32_t first_rank(size_t number) const {
    return static_cast<int32_t>(ranks_.first_ranks[firsts_[number].description]);
  }
  size_t size() const { return firsts_.size(); }

 private:
  auto records(uint32_t description) const {
    return Column::records(ranks_.descriptions[description].catalog);
  }
  std::string_view name_of(const Member& member) const {
    const Catalog& entries = ranks_.descriptions[member.description].catalog;
    return entries.texts.at(Column::records(entries)[member.entry].name);
  }
  EntryFacts facts(const Member& member) const {
    return Column::facts(ranks_.descriptions[member.description].catalog,
                         ranks_.first_ranks[member.description], member.entry);
  }

  // The number of the member's name. expected: the one that it probably is.
  Result<uint32_t> add(const Member& member, uint32_t expected) {
    const std::string_view name = name_of(member);
    std::optional<size_t> found;
    if (expected < firsts_.size() && name_of(firsts_[expected]) == name) {
      found = expected;
    } else {
      found = find(name);
    }
    if (found.has_value()) {
      SHW_RETURN_IF_ERROR(
          check_same_entry(Column::kNoun, name, facts(firsts_[*found]), facts(member)));
      return static_cast<uint32_t>(*found);
    }
    firsts_.push_back(member);
    index_.reserve(firsts_.size(), [this](size_t i) { return hash_text(name_of(firsts_[i])); });
    index_.insert(hash_text(name), firsts_.size() - 1);
    return static_cast<uint32_t>(firsts_.size() - 1);
  }

  // Names to groups, of which rank_local ones are none. Names come in the order of the groups.
  EntryGroups shared_groups(std::vector<std::vector<uint32_t>> named) const {
    std::vector<uint32_t> group_of_name;
    uint32_t groups = 0;
    for (const Member& first : firsts_) {
      const bool own = records(first.description)[first.entry].kind == EntryKind::kRankLocal;
      group_of_name.push_back(own ? kOwnEntry : groups++);
    }
    EntryGroups made;
    made.begins.assign(groups + 1, 0);
    for (std::vector<uint32_t>& column : named) {
      for (uint32_t& each : column) {
        each = group_of_name[each];
        if (each != kOwnEntry) ++made.begins[each + 1];
      }
    }
    for (uint32_t g = 0; g < groups; ++g) made.begins[g + 1] += made.begins[g];
    made.members.resize(made.begins.back());
    std::vector<uint64_t> next(made.begins.begin(), made.begins.end());
    for (uint32_t d = 0; d < named.size(); ++d) {
      for (uint32_t i = 0; i < named[d].size(); ++i) {
        if (named[d][i] != kOwnEntry) made.members[next[named[d][i]]++] = {d, i};
      }
    }
    made.group_of = std::move(named);
    return made;
  }

  const RankPlans& ranks_;
  std::vector<Member> firsts_;  // of each name
  HashIndex index_;             // of names
};

// A name is a tensor on all ranks that have it, or an object on all.
Status check_names_apart(const Grouping<TensorColumn>& tensors,
                         const Grouping<ObjectColumn>& objects) {
  for (size_t i = 0; i < objects.size(); ++i) {
    const std::string_view name = objects.name_of(i);
    const std::optional<size_t> tensor = tensors.find(name);
    if (!tensor.has_value()) continue;
    return entry_conflict("entry", name, "type", {tensors.first_rank(*tensor), "tensor"},
                          {objects.first_rank(i), "object"});
  }
  return {};
}

}  // namespace

Result<MergedEntries> merge_entries(const RankPlans& ranks) {
  Grouping<TensorColumn> tensors(ranks);
  Grouping<ObjectColumn> objects(ranks);
  MergedEntries merged;
  SHW_ASSIGN_OR_RETURN(merged.tensors, tensors.run());
  SHW_ASSIGN_OR_RETURN(merged.objects, objects.run());
  SHW_RETURN_IF_ERROR(check_names_apart(tensors, objects));
  return merged;
}

std::vector<CatalogEntry> catalog_order(const RankPlans& ranks, const EntryGroups& groups) {
  std::vector<bool> has_own;
  has_own.reserve(groups.group_of.size());
  for (const std::vector<uint32_t>& column : groups.group_of)
    has_own.push_back(std::ranges::find(column, kOwnEntry) != column.end());
  std::vector<CatalogEntry> order;
  order.reserve(groups.size());
  for (uint32_t r = 0; r < ranks.rank_count(); ++r) {
    const uint32_t d = ranks.description_of_rank[r];
    const bool is_first = ranks.first_ranks[d] == r;
    if (!is_first && !has_own[d]) continue;
    const std::vector<uint32_t>& column = groups.group_of[d];
    for (uint32_t i = 0; i < column.size(); ++i) {
      const bool own = column[i] == kOwnEntry;
      const bool is_new = own || (is_first && groups.of(column[i])[0].description == d);
      if (is_new) order.push_back({column[i], r, i});
    }
  }
  return order;
}

uint32_t entry_of(const EntryGroups& groups, const RankPlans& ranks, const CatalogEntry& entry,
                  uint32_t rank) {
  if (entry.group == kOwnEntry) return entry.entry;
  const std::span<const Member> members = groups.of(entry.group);
  return std::ranges::lower_bound(members, ranks.description_of_rank[rank], {},
                                  &Member::description)
      ->entry;
}

RankMembers::RankMembers(const RankPlans& ranks)
    : begins_(ranks.descriptions.size() + 1, 0), ranks_(ranks.rank_count()) {
  for (const uint32_t d : ranks.description_of_rank) ++begins_[d + 1];
  for (size_t d = 0; d + 1 < begins_.size(); ++d) begins_[d + 1] += begins_[d];
  std::vector<uint64_t> next(begins_.begin(), begins_.end());
  for (uint32_t r = 0; r < ranks_.size(); ++r) ranks_[next[ranks.description_of_rank[r]]++] = r;
}

std::span<const RankMember> RankMembers::of(std::span<const Member> members) {
  const auto same = [](const Member& member, uint32_t description) {
    return member.description == description;
  };
  if (!std::ranges::equal(members, descriptions_, same)) gather(members);
  for (size_t i = 0; i < found_.size(); ++i) found_[i].entry = members[slots_[i]].entry;
  return found_;
}

void RankMembers::gather(std::span<const Member> members) {
  descriptions_.clear();
  std::vector<std::pair<uint32_t, uint32_t>> found;  // rank, slot
  for (uint32_t slot = 0; slot < members.size(); ++slot) {
    descriptions_.push_back(members[slot].description);
    for (const uint32_t rank : ranks_of(members[slot].description)) found.emplace_back(rank, slot);
  }
  if (!std::ranges::is_sorted(found)) std::ranges::sort(found);
  found_.resize(found.size());
  slots_.resize(found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    slots_[i] = found[i].second;
    found_[i] = {found[i].first, members[slots_[i]].description, 0};
  }
}

}  // namespace shardwright::plan::internal

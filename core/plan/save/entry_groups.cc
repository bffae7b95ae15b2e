// SPDX-License-Identifier: Apache-2.0
//
// Groups the entries of all descriptions by name and refuses groups whose members contradict each
// other. Descriptions mostly list the same names in the same order, so the name after the last one
// found is tried before the hash table.
#include <algorithm>
#include <numeric>
#include <optional>
#include <type_traits>

#include <fmt/format.h>

#include "core/base/hash_index.h"
#include "core/base/text.h"
#include "core/plan/save/merge_internal.h"
#include "core/tensor/dtype.h"

namespace shardwright::plan::internal {
namespace {

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

struct ConflictSide {
  int32_t rank = 0;
  std::string value;
};
// "<noun> 'name' has <property> a on rank i and b on rank k".
Status entry_conflict(std::string_view noun, std::string_view name, std::string_view property,
                      const ConflictSide& first, const ConflictSide& other) {
  std::string message = fmt::format("{} '{}' has {} {} on rank {} and {} on rank {}", noun,
                                    escape_text(name), property, escape_text(first.value),
                                    first.rank, escape_text(other.value), other.rank);
  if (property == "kind") message += "; give it one kind on all ranks (a kind pattern does)";
  return invalid_argument(std::move(message))
      .with_detail("tensor", name)
      .with_detail("parameter", property)
      .with_detail("rank", std::to_string(first.rank))
      .with_detail("rank", std::to_string(other.rank))
      .with_detail("expected", first.value)
      .with_detail("found", other.value);
}

// Record: of tensors or of objects.
template <typename Record>
class Grouping {
  static constexpr bool kTensors = std::is_same_v<Record, TensorRecord>;

 public:
  explicit Grouping(const RankPlans& ranks) : ranks_(ranks) {}

  Result<EntryGroups> run() {
    EntryGroups made;
    made.begins.push_back(0);
    made.group_of.resize(ranks_.descriptions.size());
    for (uint32_t d = 0; d < ranks_.descriptions.size(); ++d) {
      const size_t count = records(d).size();
      made.group_of[d].reserve(count);
      uint32_t expected = 0;
      for (uint32_t i = 0; i < count; ++i) {
        SHW_ASSIGN_OR_RETURN(const uint32_t name, add({d, i}, expected));
        expected = name + 1;
        const uint32_t group = group_of_name_[name];
        made.group_of[d].push_back(group);
        if (group == kOwnEntry) continue;
        made.begins.resize(std::max<size_t>(made.begins.size(), group + 2), 0);
        ++made.begins[group + 1];
      }
    }
    std::inclusive_scan(made.begins.begin(), made.begins.end(), made.begins.begin());
    made.members.resize(made.begins.back());
    std::vector<uint64_t> next(made.begins.begin(), made.begins.end());
    for (uint32_t d = 0; d < made.group_of.size(); ++d) {
      for (uint32_t i = 0; i < made.group_of[d].size(); ++i) {
        const uint32_t group = made.group_of[d][i];
        if (group != kOwnEntry) made.members[next[group]++] = {d, i};
      }
    }
    return made;
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
  const Catalog& entries(uint32_t description) const {
    return ranks_.descriptions[description].catalog;
  }
  const std::vector<Record>& records(uint32_t description) const {
    if constexpr (kTensors) {
      return entries(description).tensors;
    } else {
      return entries(description).objects;
    }
  }
  const Record& record(const Member& member) const {
    return records(member.description)[member.entry];
  }
  std::string_view name_of(const Member& member) const {
    return entries(member.description).texts.at(record(member).name);
  }

  // Two entries of one name: a kind that differs, and unless they are rank_local, a dtype, shape or
  // path.
  Status check_same(std::string_view name, const Member& a, const Member& b) const {
    const Catalog& first = entries(a.description);
    const Catalog& other = entries(b.description);
    const auto conflict = [&](std::string_view property, std::string_view first_value,
                              std::string_view other_value) {
      const auto rank_of = [&](const Member& member) {
        return static_cast<int32_t>(ranks_.first_ranks[member.description]);
      };
      return entry_conflict(kTensors ? "tensor" : "object", name, property,
                            {rank_of(a), std::string(first_value)},
                            {rank_of(b), std::string(other_value)});
    };
    const EntryKind kind = record(a).kind;
    if (kind != record(b).kind)
      return conflict("kind", entry_kind_name(kind), entry_kind_name(record(b).kind));
    if (kind == EntryKind::kRankLocal) return {};
    if constexpr (kTensors) {
      if (record(a).dtype != record(b).dtype)
        return conflict("dtype", dtype_name(record(a).dtype), dtype_name(record(b).dtype));
      if (!std::ranges::equal(first.shape(a.entry), other.shape(b.entry)))
        return conflict("shape", shape_text(first.shape(a.entry)),
                        shape_text(other.shape(b.entry)));
    }
    const std::string_view path = first.texts.at(record(a).path);
    const std::string_view other_path = other.texts.at(record(b).path);
    return path == other_path ? Status() : conflict("path", path, other_path);
  }

  // The number of the member's name. expected: the one that it probably is.
  Result<uint32_t> add(const Member& member, uint32_t expected) {
    const std::string_view name = name_of(member);
    const bool as_expected = expected < firsts_.size() && name_of(firsts_[expected]) == name;
    const std::optional<size_t> found = as_expected ? expected : find(name);
    if (found.has_value()) {
      SHW_RETURN_IF_ERROR(check_same(name, firsts_[*found], member));
      return static_cast<uint32_t>(*found);
    }
    firsts_.push_back(member);
    const bool own = record(member).kind == EntryKind::kRankLocal;
    group_of_name_.push_back(own ? kOwnEntry : groups_++);
    index_.reserve(firsts_.size(), [this](size_t i) { return hash_text(name_of(firsts_[i])); });
    index_.insert(hash_text(name), firsts_.size() - 1);
    return static_cast<uint32_t>(firsts_.size() - 1);
  }

  const RankPlans& ranks_;
  std::vector<Member> firsts_;           // of each name
  std::vector<uint32_t> group_of_name_;  // or kOwnEntry
  uint32_t groups_ = 0;
  HashIndex index_;  // of names
};

// A name is a tensor on all ranks that have it, or an object on all.
Status check_names_apart(const Grouping<TensorRecord>& tensors,
                         const Grouping<ObjectRecord>& objects) {
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
  Grouping<TensorRecord> tensors(ranks);
  Grouping<ObjectRecord> objects(ranks);
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
  std::inclusive_scan(begins_.begin(), begins_.end(), begins_.begin());
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

// SPDX-License-Identifier: Apache-2.0
//
// Groups the entries of all ranks by name and refuses groups whose members contradict each other.
// Ranks mostly list the same names in the same order, so the group after the last one found is
// tried before the hash table.
#include <algorithm>

#include "core/base/hash_index.h"
#include "core/plan/save/conflicts_internal.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {
namespace {

// Columns of tensors, as Grouping wants them.
struct TensorColumn {
  static constexpr std::string_view kNoun = "tensor";
  static std::span<const TensorRecord> records(const CatalogView& catalog) {
    return catalog.tensors;
  }

  static EntryFacts facts(const LocalView& view, uint32_t i) {
    const TensorRecord& record = view.catalog.tensors[i];
    return {view.rank, record.kind, view.catalog.texts.at(record.path), record.dtype,
            view.catalog.shape(i)};
  }
};

struct ObjectColumn {
  static constexpr std::string_view kNoun = "object";
  static std::span<const ObjectRecord> records(const CatalogView& catalog) {
    return catalog.objects;
  }

  static EntryFacts facts(const LocalView& view, uint32_t i) {
    const ObjectRecord& record = view.catalog.objects[i];
    return {view.rank, record.kind, view.catalog.texts.at(record.path), DType::kInvalid, {}};
  }
};

// Groups of the entries of some views: the source of a member is the number of its view here.
template <typename Column>
class Grouping {
 public:
  explicit Grouping(std::vector<const LocalView*> sources) : sources_(std::move(sources)) {}

  Result<Groups> run() {
    size_t members = 0;
    for (const LocalView* local : sources_) members += Column::records(local->catalog).size();
    group_of_.reserve(members);
    for (uint32_t source = 0; source < sources_.size(); ++source) {
      const size_t count = Column::records(sources_[source]->catalog).size();
      uint32_t expected = 0;
      for (uint32_t i = 0; i < count; ++i) SHW_RETURN_IF_ERROR(add({source, i}, &expected));
    }
    return scatter();
  }

  // First group of that name, or nullopt.
  std::optional<size_t> named(std::string_view name) const {
    return named_.find(hash_text(name), [&](size_t group) { return name_of(group) == name; });
  }
  std::string_view name_of(size_t group) const {
    const CatalogView& catalog = sources_[firsts_[group].rank]->catalog;
    return catalog.texts.at(Column::records(catalog)[firsts_[group].entry].name);
  }
  int32_t first_rank(size_t group) const { return sources_[firsts_[group].rank]->rank; }
  size_t size() const { return firsts_.size(); }

 private:
  // expected: the group that probably has the entry; set to the one after the group that does.
  Status add(const Member& member, uint32_t* expected) {
    const LocalView& local = *sources_[member.rank];
    const auto& record = Column::records(local.catalog)[member.entry];
    const std::string_view name = local.catalog.texts.at(record.name);
    const int64_t found = find(name, *expected);
    uint32_t group = 0;
    if (found < 0) {
      group = add_group(member);
      named_.reserve(named_count_ + 1, [this](size_t at) { return hash_text(name_of(at)); });
      named_.insert(hash_text(name), group);
      ++named_count_;
    } else {
      const Member first = firsts_[static_cast<size_t>(found)];
      SHW_RETURN_IF_ERROR(check_same_entry(Column::kNoun, name,
                                           Column::facts(*sources_[first.rank], first.entry),
                                           Column::facts(local, member.entry)));
      // Under a rank_local name each rank's entry is a group of its own; the name leads to the
      // first.
      const bool own = record.kind == EntryKind::kRankLocal;
      group = own ? add_group(member) : static_cast<uint32_t>(found);
    }
    group_of_.push_back(group);
    *expected = (found < 0 ? group : static_cast<uint32_t>(found)) + 1;
    return {};
  }

  int64_t find(std::string_view name, uint32_t expected) const {
    if (expected < firsts_.size() && named_first_[expected] && name_of(expected) == name)
      return expected;
    const std::optional<size_t> found = named(name);
    return found.has_value() ? static_cast<int64_t>(*found) : -1;
  }

  uint32_t add_group(const Member& first) {
    const auto& record = Column::records(sources_[first.rank]->catalog)[first.entry];
    firsts_.push_back(first);
    named_first_.push_back(record.kind != EntryKind::kRankLocal);
    return static_cast<uint32_t>(firsts_.size() - 1);
  }

  // Counting sort of the members by group; they come in the order of the sources and stay so.
  Groups scatter() const {
    Groups groups;
    groups.begins.assign(firsts_.size() + 1, 0);
    for (const uint32_t group : group_of_) ++groups.begins[group + 1];
    for (size_t g = 0; g < firsts_.size(); ++g) groups.begins[g + 1] += groups.begins[g];
    groups.members.resize(group_of_.size());
    std::vector<uint64_t> next(groups.begins.begin(), groups.begins.end());
    size_t at = 0;
    for (uint32_t source = 0; source < sources_.size(); ++source) {
      const size_t count = Column::records(sources_[source]->catalog).size();
      for (uint32_t i = 0; i < count; ++i) groups.members[next[group_of_[at++]]++] = {source, i};
    }
    return groups;
  }

  std::vector<const LocalView*> sources_;
  std::vector<Member> firsts_;      // first member of each group
  std::vector<bool> named_first_;   // false for rank_local groups, which the shortcut must not take
  std::vector<uint32_t> group_of_;  // per member, sources one after the other
  HashIndex named_;
  size_t named_count_ = 0;
};

// A name is a tensor on all ranks that have it, or an object on all.
Status check_names_apart(const Grouping<TensorColumn>& tensors,
                         const Grouping<ObjectColumn>& objects) {
  for (size_t g = 0; g < objects.size(); ++g) {
    const std::string_view name = objects.name_of(g);
    const std::optional<size_t> tensor = tensors.named(name);
    if (!tensor.has_value()) continue;
    return entry_conflict("entry", name, "type", {tensors.first_rank(*tensor), "tensor"},
                          {objects.first_rank(g), "object"});
  }
  return {};
}

}  // namespace

TensorGroups::TensorGroups(Groups by_table, std::span<const LocalView> views, uint32_t table_count)
    : by_table_(std::move(by_table)), rank_begins_(table_count + 1, 0), ranks_(views.size()) {
  for (const LocalView& view : views) ++rank_begins_[view.table + 1];
  for (uint32_t t = 0; t < table_count; ++t) rank_begins_[t + 1] += rank_begins_[t];
  std::vector<uint64_t> next(rank_begins_.begin(), rank_begins_.end());
  for (uint32_t rank = 0; rank < views.size(); ++rank) ranks_[next[views[rank].table]++] = rank;
}

Member TensorGroups::first(size_t group) const {
  const Member table = by_table_.of(group)[0];  // tables come in the order of their first ranks
  return {ranks_[rank_begins_[table.rank]], table.entry};
}

std::span<const Member> TensorGroups::of(size_t group) {
  const std::span<const Member> tables = by_table_.of(group);
  const auto same = [](const Member& member, uint32_t table) { return member.rank == table; };
  if (!std::ranges::equal(tables, tables_, same)) gather(tables);
  for (size_t i = 0; i < members_.size(); ++i) members_[i].entry = tables[slots_[i]].entry;
  return members_;
}

void TensorGroups::gather(std::span<const Member> tables) {
  tables_.clear();
  std::vector<std::pair<uint32_t, uint32_t>> found;  // rank, slot
  for (uint32_t slot = 0; slot < tables.size(); ++slot) {
    const uint32_t table = tables[slot].rank;
    tables_.push_back(table);
    for (uint64_t i = rank_begins_[table]; i < rank_begins_[table + 1]; ++i)
      found.emplace_back(ranks_[i], slot);
  }
  if (!std::ranges::is_sorted(found)) std::ranges::sort(found);
  members_.assign(found.size(), Member());
  slots_.resize(found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    members_[i].rank = found[i].first;
    slots_[i] = found[i].second;
  }
}

Result<NamedGroups> group_entries(std::vector<const LocalView*> with_tensors,
                                  std::vector<const LocalView*> with_objects) {
  Grouping<TensorColumn> tensors(std::move(with_tensors));
  Grouping<ObjectColumn> objects(std::move(with_objects));
  NamedGroups named;
  SHW_ASSIGN_OR_RETURN(named.tensors, tensors.run());
  SHW_ASSIGN_OR_RETURN(named.objects, objects.run());
  SHW_RETURN_IF_ERROR(check_names_apart(tensors, objects));
  return named;
}

Result<MergedEntries> merge_entries(const LocalViews& locals) {
  std::vector<const LocalView*> tables(locals.table_count, nullptr);
  std::vector<const LocalView*> with_objects;
  for (const LocalView& view : locals.views) {
    if (tables[view.table] == nullptr) tables[view.table] = &view;
    with_objects.push_back(&view);
  }
  SHW_ASSIGN_OR_RETURN(NamedGroups named,
                       group_entries(std::move(tables), std::move(with_objects)));
  return MergedEntries{TensorGroups(std::move(named.tensors), locals.views, locals.table_count),
                       std::move(named.objects)};
}

}  // namespace shardwright::plan::internal

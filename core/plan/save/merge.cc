// SPDX-License-Identifier: Apache-2.0
//
// Groups the entries of all ranks by name and refuses groups whose members contradict each other.
// Ranks mostly list the same names in the same order, so the group after the last one found is
// tried before the hash table.
#include <algorithm>

#include <fmt/format.h>

#include "core/base/hash_index.h"
#include "core/base/text.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {
namespace {

struct Side {
  int32_t rank = 0;
  std::string value;
};

Status conflict(std::string_view noun, std::string_view name, std::string_view property,
                const Side& first, const Side& other) {
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

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Columns of tensors, as Grouping wants them.
struct TensorColumn {
  static constexpr std::string_view kNoun = "tensor";
  static const std::vector<TensorRecord>& records(const Catalog& catalog) {
    return catalog.tensors;
  }

  static Status check(const LocalSavePlan& a, uint32_t i, const LocalSavePlan& b, uint32_t k) {
    const TensorRecord& first = a.catalog.tensors[i];
    const TensorRecord& other = b.catalog.tensors[k];
    const std::string_view name = a.catalog.texts.at(first.name);
    if (first.kind != other.kind) {
      return conflict(kNoun, name, "kind", {a.rank, std::string(entry_kind_name(first.kind))},
                      {b.rank, std::string(entry_kind_name(other.kind))});
    }
    if (first.kind == EntryKind::kRankLocal) return {};
    if (first.dtype != other.dtype) {
      return conflict(kNoun, name, "dtype", {a.rank, std::string(dtype_name(first.dtype))},
                      {b.rank, std::string(dtype_name(other.dtype))});
    }
    if (!std::ranges::equal(a.catalog.shape(i), b.catalog.shape(k))) {
      return conflict(kNoun, name, "shape", {a.rank, shape_text(a.catalog.shape(i))},
                      {b.rank, shape_text(b.catalog.shape(k))});
    }
    if (a.catalog.texts.at(first.path) != b.catalog.texts.at(other.path)) {
      return conflict(kNoun, name, "path", {a.rank, std::string(a.catalog.texts.at(first.path))},
                      {b.rank, std::string(b.catalog.texts.at(other.path))});
    }
    return {};
  }
};

struct ObjectColumn {
  static constexpr std::string_view kNoun = "object";
  static const std::vector<ObjectRecord>& records(const Catalog& catalog) {
    return catalog.objects;
  }

  static Status check(const LocalSavePlan& a, uint32_t i, const LocalSavePlan& b, uint32_t k) {
    const ObjectRecord& first = a.catalog.objects[i];
    const ObjectRecord& other = b.catalog.objects[k];
    const std::string_view name = a.catalog.texts.at(first.name);
    if (first.kind != other.kind) {
      return conflict(kNoun, name, "kind", {a.rank, std::string(entry_kind_name(first.kind))},
                      {b.rank, std::string(entry_kind_name(other.kind))});
    }
    if (first.kind == EntryKind::kRankLocal) return {};
    if (a.catalog.texts.at(first.path) != b.catalog.texts.at(other.path)) {
      return conflict(kNoun, name, "path", {a.rank, std::string(a.catalog.texts.at(first.path))},
                      {b.rank, std::string(b.catalog.texts.at(other.path))});
    }
    return {};
  }
};

template <typename Column>
class Grouping {
 public:
  explicit Grouping(std::span<const LocalSavePlan> locals) : locals_(locals) {}

  Result<Groups> run() {
    size_t members = 0;
    for (const LocalSavePlan& local : locals_) members += Column::records(local.catalog).size();
    group_of_.reserve(members);
    for (const LocalSavePlan& local : locals_) {
      const auto& records = Column::records(local.catalog);
      uint32_t expected = 0;
      for (uint32_t i = 0; i < records.size(); ++i) {
        const std::string_view name = local.catalog.texts.at(records[i].name);
        const int64_t found = find(name, expected);
        uint32_t group = 0;
        if (found < 0) {
          group = add_group(static_cast<uint32_t>(local.rank), i);
          named_.reserve(named_count_ + 1, [this](size_t at) { return hash_text(name_at()(at)); });
          named_.insert(hash_text(name), group);
          ++named_count_;
        } else {
          const Member first = firsts_[static_cast<size_t>(found)];
          SHW_RETURN_IF_ERROR(Column::check(locals_[first.rank], first.entry, local, i));
          // Under a rank_local name each rank's entry is a group of its own; the name leads to the
          // first.
          const bool own = records[i].kind == EntryKind::kRankLocal;
          group =
              own ? add_group(static_cast<uint32_t>(local.rank), i) : static_cast<uint32_t>(found);
        }
        group_of_.push_back(group);
        expected = (found < 0 ? group : static_cast<uint32_t>(found)) + 1;
      }
    }
    return scatter();
  }

  // First group of that name, or nullopt.
  std::optional<size_t> named(std::string_view name) const {
    return named_.find(hash_text(name), [&](size_t group) { return name_at()(group) == name; });
  }
  auto name_at() const {
    return [this](size_t group) {
      const Catalog& catalog = locals_[firsts_[group].rank].catalog;
      return catalog.texts.at(Column::records(catalog)[firsts_[group].entry].name);
    };
  }
  const std::vector<Member>& firsts() const { return firsts_; }

 private:
  int64_t find(std::string_view name, uint32_t expected) const {
    if (expected < firsts_.size() && named_first_[expected] && name_at()(expected) == name)
      return expected;
    const std::optional<size_t> found = named(name);
    return found.has_value() ? static_cast<int64_t>(*found) : -1;
  }

  uint32_t add_group(uint32_t rank, uint32_t entry) {
    const auto& records = Column::records(locals_[rank].catalog);
    firsts_.push_back({rank, entry});
    named_first_.push_back(records[entry].kind != EntryKind::kRankLocal);
    return static_cast<uint32_t>(firsts_.size() - 1);
  }

  // Counting sort of the members by group; they come in rank order and stay so.
  Groups scatter() const {
    Groups groups;
    groups.begins.assign(firsts_.size() + 1, 0);
    for (const uint32_t group : group_of_) ++groups.begins[group + 1];
    for (size_t g = 0; g < firsts_.size(); ++g) groups.begins[g + 1] += groups.begins[g];
    groups.members.resize(group_of_.size());
    std::vector<uint64_t> next(groups.begins.begin(), groups.begins.end());
    size_t at = 0;
    for (const LocalSavePlan& local : locals_) {
      const size_t count = Column::records(local.catalog).size();
      for (uint32_t i = 0; i < count; ++i) {
        groups.members[next[group_of_[at++]]++] = {static_cast<uint32_t>(local.rank), i};
      }
    }
    return groups;
  }

  std::span<const LocalSavePlan> locals_;
  std::vector<Member> firsts_;      // first member of each group
  std::vector<bool> named_first_;   // false for rank_local groups, which the shortcut must not take
  std::vector<uint32_t> group_of_;  // per member, ranks one after the other
  HashIndex named_;
  size_t named_count_ = 0;
};

// A name is a tensor on all ranks that have it, or an object on all.
Status check_names_apart(std::span<const LocalSavePlan> locals,
                         const Grouping<TensorColumn>& tensors,
                         const Grouping<ObjectColumn>& objects) {
  for (size_t g = 0; g < objects.firsts().size(); ++g) {
    const std::string_view name = objects.name_at()(g);
    const std::optional<size_t> tensor = tensors.named(name);
    if (!tensor.has_value()) continue;
    const int32_t tensor_rank = locals[tensors.firsts()[*tensor].rank].rank;
    const int32_t object_rank = locals[objects.firsts()[g].rank].rank;
    return conflict("entry", name, "type", {tensor_rank, "tensor"}, {object_rank, "object"});
  }
  return {};
}

}  // namespace

Result<MergedEntries> merge_entries(std::span<const LocalSavePlan> locals) {
  Grouping<TensorColumn> tensors(locals);
  Grouping<ObjectColumn> objects(locals);
  MergedEntries merged;
  SHW_ASSIGN_OR_RETURN(merged.tensors, tensors.run());
  SHW_ASSIGN_OR_RETURN(merged.objects, objects.run());
  SHW_RETURN_IF_ERROR(check_names_apart(locals, tensors, objects));
  return merged;
}

}  // namespace shardwright::plan::internal

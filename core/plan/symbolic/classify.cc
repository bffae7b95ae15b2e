// SPDX-License-Identifier: Apache-2.0
//
// Each shared tensor to the rule that it follows. Tensors of equal shape and cuts share a grid;
// those whose holders have equal coordinates share a holder map, also when they cut other
// dimensions. Where chunks have different numbers of holders, or Megatron's order takes chunks one
// by one, there is no rule for the tensor as a whole, and its chunks are listed.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include "core/base/hash_index.h"
#include "core/plan/symbolic/plan_body_internal.h"

namespace shardwright::plan::internal {
namespace {

// Distinct keys to running numbers.
class Numbers {
 public:
  // The key's number; true when it is new.
  std::pair<uint32_t, bool> of(const std::string& key) {
    const uint64_t hash = hash_text(key);
    const auto found = index_.find(hash, [&](size_t i) { return keys_[i] == key; });
    if (found.has_value()) return {static_cast<uint32_t>(*found), false};
    keys_.push_back(key);
    index_.reserve(keys_.size(), [this](size_t i) { return hash_text(keys_[i]); });
    index_.insert(hash, keys_.size() - 1);
    return {static_cast<uint32_t>(keys_.size() - 1), true};
  }

 private:
  std::vector<std::string> keys_;
  HashIndex index_;
};

template <typename Value>
void append_bytes(std::string* key, std::span<const Value> values) {
  key->append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

class Classification {
 public:
  explicit Classification(SymbolicBody* body) : body_(*body) {}

  Status run() {
    for (size_t g = 0; g < body_.merged.tensors.size(); ++g) {
      const std::span<const GroupMember> members = body_.merged.tensors.of(g);
      TensorPlan plan;
      if (body_.owner != OwnerRule::kExact && is_regular(members)) {
        SHW_ASSIGN_OR_RETURN(plan, regular_plan(g));
      }
      if (plan.replicas == 0) {
        plan = {kListed, static_cast<uint32_t>(body_.listed.size()), 0, 0};
        SHW_ASSIGN_OR_RETURN(ListedTensor listed, list_tensor(body_.ranks, body_.parts, members));
        body_.listed.push_back(std::move(listed));
      }
      body_.tensors.push_back(plan);
    }
    for (size_t g = 0; g < body_.merged.objects.size(); ++g) {
      groups_.clear();
      for (const GroupMember& member : body_.merged.objects.of(g))
        groups_.push_back({member.description, {}});
      body_.object_maps.push_back(map_number());
    }
    return {};
  }

 private:
  // All members that hold something cut the same dimensions into as many parts, in the same order.
  bool is_regular(std::span<const GroupMember> members) {
    groups_.clear();
    first_ = std::nullopt;
    for (const GroupMember& member : members) {
      const SymbolicDescription& description = body_.description(member);
      const uint32_t form = description.forms[member.entry];
      if (form == kBoxes) return false;
      if (form == kNothing) continue;
      const std::span<const ShardAxis> axes = description.axes_of(member.entry);
      if (!first_.has_value()) first_ = axes;
      const bool same =
          std::ranges::equal(*first_, axes, [](const ShardAxis& a, const ShardAxis& b) {
            return a.dim == b.dim && a.extent == b.extent;
          });
      if (!same) return false;
      groups_.push_back({member.description, {axes.begin(), axes.end()}});
    }
    return first_.has_value();
  }

  // Of is_regular; without replicas where columns have different numbers of them.
  Result<TensorPlan> regular_plan(size_t group) {
    // Columns count the axis with the widest stride first, so that they mostly ascend with ranks
    // and do not depend on which dimension an axis cuts.
    std::vector<uint32_t> order(first_->size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, [this](uint32_t a, uint32_t b) {
      const ShardAxis& first = (*first_)[a];
      const ShardAxis& second = (*first_)[b];
      if (first.stride != second.stride) return first.stride > second.stride;
      return first.extent != second.extent ? first.extent < second.extent
                                           : first.phase < second.phase;
    });
    std::vector<GridAxis> grid_axes;
    grid_axes.reserve(order.size());
    for (const uint32_t i : order)
      grid_axes.push_back({(*first_)[i].dim, (*first_)[i].extent, static_cast<int32_t>(i)});
    for (HolderGroup& each : groups_) {
      const std::vector<ShardAxis> axes = each.axes;
      for (size_t i = 0; i < order.size(); ++i) each.axes[i] = axes[order[i]];
    }
    TensorPlan plan;
    SHW_ASSIGN_OR_RETURN(plan.grid, grid_number(body_.shape(group), grid_axes));
    plan.map = map_number();
    const auto [known, is_new] = replicas_.try_emplace({plan.grid, plan.map}, 0U);
    if (is_new) known->second = equal_replicas(body_.grids[plan.grid], body_.maps[plan.map]);
    plan.replicas = known->second;
    return plan;
  }

  // Holders of each column that holds elements, 0 when they are not equally many.
  static uint32_t equal_replicas(const ShardGrid& grid, const HolderMap& map) {
    if (map.least() == map.most()) return map.most();
    std::optional<uint32_t> found;
    for (const ColumnRun& run : grid.runs()) {
      for (uint32_t column = run.first; column < run.first + run.count; ++column) {
        const auto replicas = static_cast<uint32_t>(map.of(column).size());
        if (found.value_or(replicas) != replicas) return 0;
        found = replicas;
      }
    }
    return found.value_or(map.most());  // a tensor without elements
  }

  Result<uint32_t> grid_number(std::span<const int64_t> shape, std::span<const GridAxis> axes) {
    key_.clear();
    append_bytes(&key_, axes);
    append_bytes(&key_, shape);
    key_ += static_cast<char>(axes.size());
    const auto [number, is_new] = grid_numbers_.of(key_);
    if (is_new) {
      SHW_ASSIGN_OR_RETURN(ShardGrid grid, ShardGrid::make(shape, axes));
      body_.grids.push_back(std::move(grid));
    }
    return number;
  }

  // Of groups_.
  uint32_t map_number() {
    key_.clear();
    for (HolderGroup& group : groups_) {
      for (ShardAxis& axis : group.axes) axis.dim = 0;
      append_bytes(&key_, std::span<const uint32_t>(&group.description, 1));
      append_bytes(&key_, std::span<const ShardAxis>(group.axes));
    }
    key_ += static_cast<char>(groups_[0].axes.size());
    const auto [number, is_new] = map_numbers_.of(key_);
    if (is_new) body_.maps.emplace_back(body_.ranks, groups_);
    return number;
  }

  SymbolicBody& body_;
  Numbers grid_numbers_;
  Numbers map_numbers_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> replicas_;  // by grid and map
  std::vector<HolderGroup> groups_;                             // of the group at hand
  std::optional<std::span<const ShardAxis>> first_;
  std::string key_;
};

}  // namespace

Status classify_groups(SymbolicBody* body) {
  return Classification(body).run();
}

const GroupMember& SymbolicBody::member_of(const EntryGroups& groups, size_t group,
                                           uint32_t rank) const {
  const std::span<const GroupMember> members = groups.of(group);
  return *std::ranges::lower_bound(members, ranks.description_of_rank[rank], {},
                                   &GroupMember::description);
}

}  // namespace shardwright::plan::internal

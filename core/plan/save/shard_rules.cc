// SPDX-License-Identifier: Apache-2.0
#include "core/plan/save/shard_rules_internal.h"

#include <algorithm>
#include <numeric>

namespace shardwright::plan::internal {
namespace {

template <typename Value>
void append_bytes(std::string* key, std::span<const Value> values) {
  key->append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

// Holders of each column that holds elements, 0 when they are not equally many.
uint32_t equal_replicas(const ShardGrid& grid, const HolderMap& map) {
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

}  // namespace

std::pair<uint32_t, bool> ShardRules::Numbers::of(const std::string& key) {
  const uint64_t hash = hash_text(key);
  const auto found = index_.find(hash, [&](size_t i) { return keys_[i] == key; });
  if (found.has_value()) return {static_cast<uint32_t>(*found), false};
  keys_.push_back(key);
  index_.reserve(keys_.size(), [this](size_t i) { return hash_text(keys_[i]); });
  index_.insert(hash, keys_.size() - 1);
  return {static_cast<uint32_t>(keys_.size() - 1), true};
}

Status ShardRules::find(std::span<const Member> members, TensorSource* tensor) {
  if (!collect(members)) return {};
  const std::vector<GridAxis> axes = sort_axes();
  const Catalog& first = ranks_.descriptions[members[0].description].catalog;
  SHW_ASSIGN_OR_RETURN(const uint32_t grid, grid_number(first.shape(members[0].entry), axes));
  const uint32_t map = map_number();
  const auto [known, is_new] = replicas_.try_emplace({grid, map}, 0U);
  if (is_new) known->second = equal_replicas(merged_.grids[grid], merged_.maps[map]);
  if (known->second == 0) return {};
  tensor->grid = grid;
  tensor->map = map;
  tensor->replicas = known->second;
  return {};
}

uint32_t ShardRules::map_of(std::span<const Member> members) {
  groups_.clear();
  for (const Member& member : members) groups_.push_back({member.description, {}});
  return map_number();
}

// True when all members that hold something cut the same dimensions into as many parts, in the same
// order; then groups_ has them.
bool ShardRules::collect(std::span<const Member> members) {
  groups_.clear();
  first_ = std::nullopt;
  for (const Member& member : members) {
    const Description& description = ranks_.descriptions[member.description];
    if (description.forms[member.entry] == kBoxes) return false;
    if (description.forms[member.entry] == kNothing) continue;
    const std::span<const ShardAxis> axes = description.axes_of(member.entry);
    if (!first_.has_value()) first_ = axes;
    const bool same = std::ranges::equal(*first_, axes, [](const ShardAxis& a, const ShardAxis& b) {
      return a.dim == b.dim && a.extent == b.extent;
    });
    if (!same) return false;
    groups_.push_back({member.description, {axes.begin(), axes.end()}});
  }
  return first_.has_value();
}

// Columns count the axis with the widest stride first, so that they mostly ascend with ranks and do
// not depend on which dimension an axis cuts. Sorts the axes of groups_ like that.
std::vector<GridAxis> ShardRules::sort_axes() {
  std::vector<uint32_t> order(first_->size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [this](uint32_t a, uint32_t b) {
    const ShardAxis& first = (*first_)[a];
    const ShardAxis& second = (*first_)[b];
    if (first.stride != second.stride) return first.stride > second.stride;
    return first.extent != second.extent ? first.extent < second.extent
                                         : first.phase < second.phase;
  });
  std::vector<GridAxis> axes;
  axes.reserve(order.size());
  for (const uint32_t i : order)
    axes.push_back({(*first_)[i].dim, (*first_)[i].extent, static_cast<int32_t>(i)});
  for (HolderGroup& each : groups_) {
    const std::vector<ShardAxis> unsorted = each.axes;
    for (size_t i = 0; i < order.size(); ++i) each.axes[i] = unsorted[order[i]];
  }
  return axes;
}

Result<uint32_t> ShardRules::grid_number(std::span<const int64_t> shape,
                                         std::span<const GridAxis> axes) {
  key_.clear();
  append_bytes(&key_, axes);
  append_bytes(&key_, shape);
  key_ += static_cast<char>(axes.size());
  const auto [number, is_new] = grid_numbers_.of(key_);
  if (is_new) {
    SHW_ASSIGN_OR_RETURN(ShardGrid grid, ShardGrid::make(shape, axes));
    merged_.grids.push_back(std::move(grid));
  }
  return number;
}

// Of groups_.
uint32_t ShardRules::map_number() {
  key_.clear();
  for (HolderGroup& group : groups_) {
    for (ShardAxis& axis : group.axes) axis.dim = 0;
    append_bytes(&key_, std::span<const uint32_t>(&group.description, 1));
    append_bytes(&key_, std::span<const ShardAxis>(group.axes));
  }
  key_ += static_cast<char>(groups_[0].axes.size());
  const auto [number, is_new] = map_numbers_.of(key_);
  if (is_new) merged_.maps.emplace_back(ranks_.description_of_rank, groups_);
  return number;
}

}  // namespace shardwright::plan::internal

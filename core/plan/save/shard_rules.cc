// SPDX-License-Identifier: Apache-2.0
#include "core/plan/save/shard_rules_internal.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace shardwright::plan::internal {
namespace {

template <typename Value>
void append_bytes(std::string* key, std::span<const Value> values) {
  key->append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

// Holders of each column that holds elements, 0 when they are not equally many.
uint32_t equal_replicas(const ShardGrid& grid, const HolderMap& map) {
  const std::span<const ColumnRun> runs = grid.runs();
  if (map.least() == map.most() || runs.empty()) return map.most();
  const size_t replicas = map.of(runs[0].first).size();
  for (const ColumnRun& run : runs) {
    for (uint32_t column = run.first; column < run.first + run.count; ++column) {
      if (map.of(column).size() != replicas) return 0;
    }
  }
  return static_cast<uint32_t>(replicas);
}

}  // namespace

void ShardRules::find(std::span<const Member> members, TensorSource* tensor) {
  if (!collect(members)) return;
  const std::vector<GridAxis> axes = sort_axes();
  const Catalog& first = ranks_.descriptions[members[0].description].catalog;
  const uint32_t grid = grid_number(first.shape(members[0].entry), axes);
  const uint32_t map = map_number();
  const auto [known, is_new] = replicas_.try_emplace({grid, map}, 0U);
  if (is_new) known->second = equal_replicas(merged_.grids[grid], merged_.maps[map]);
  if (known->second == 0) return;
  tensor->grid = grid;
  tensor->map = map;
  tensor->replicas = known->second;
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
  for (const Member& member : members) {
    const Description& description = ranks_.descriptions[member.description];
    if (description.forms[member.entry] == kBoxes) return false;
    if (description.forms[member.entry] == kNothing) continue;
    const std::span<const ShardAxis> axes = description.axes_of(member.entry);
    groups_.push_back({member.description, {axes.begin(), axes.end()}});
    const auto cut_alike = [](const ShardAxis& a, const ShardAxis& b) {
      return a.dim == b.dim && a.extent == b.extent;
    };
    if (!std::ranges::equal(groups_[0].axes, axes, cut_alike)) return false;
  }
  return !groups_.empty();
}

// Columns count the axis with the widest stride first, so that they mostly ascend with ranks and do
// not depend on which dimension an axis cuts. Sorts the axes of groups_ like that.
std::vector<GridAxis> ShardRules::sort_axes() {
  const std::vector<ShardAxis>& first = groups_[0].axes;
  std::vector<uint32_t> order(first.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](uint32_t i) {
    return std::tuple(-first[i].stride, first[i].extent, first[i].phase);
  });
  std::vector<GridAxis> axes;
  axes.reserve(order.size());
  for (const uint32_t i : order)
    axes.push_back({first[i].dim, first[i].extent, static_cast<int32_t>(i)});
  for (HolderGroup& each : groups_) {
    const std::vector<ShardAxis> unsorted = each.axes;
    for (size_t i = 0; i < order.size(); ++i) each.axes[i] = unsorted[order[i]];
  }
  return axes;
}

uint32_t ShardRules::grid_number(std::span<const int64_t> shape, std::span<const GridAxis> axes) {
  key_.clear();
  append_bytes(&key_, axes);
  append_bytes(&key_, shape);
  key_ += static_cast<char>(axes.size());
  const auto [known, is_new] = grid_numbers_.try_emplace(key_, grid_numbers_.size());
  if (is_new) merged_.grids.emplace_back(shape, axes);
  return known->second;
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
  const auto [known, is_new] = map_numbers_.try_emplace(key_, map_numbers_.size());
  if (is_new) merged_.maps.emplace_back(ranks_.description_of_rank, groups_);
  return known->second;
}

}  // namespace shardwright::plan::internal

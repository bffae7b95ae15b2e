// SPDX-License-Identifier: Apache-2.0
#include "core/layout/mesh.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/base/text.h"

namespace shardwright {
namespace {

Status check_axis_names(const Mesh& mesh) {
  const auto& names = mesh.axis_names;
  if (names.empty()) return {};
  if (names.size() != mesh.shape.size()) {
    return invalid_argument(
        fmt::format("the mesh has {} axis names for {} axes", names.size(), mesh.shape.size()));
  }
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (!is_valid_utf8(*name)) {
      return invalid_argument(
          fmt::format("the name of mesh axis {} is not UTF-8", name - names.begin()));
    }
    if (std::find(names.begin(), name, *name) != name) {
      return invalid_argument(fmt::format("two mesh axes are called '{}'", escape_text(*name)));
    }
  }
  return {};
}

}  // namespace

Result<int64_t> checked_mesh_size(const Mesh& mesh) {
  if (mesh.shape.size() > static_cast<size_t>(kMaxTensorRank)) {
    return invalid_argument(
        fmt::format("the mesh has {} axes, the limit is {}", mesh.shape.size(), kMaxTensorRank));
  }
  SHW_ASSIGN_OR_RETURN(const int64_t size, checked_element_count(mesh.shape));
  if (size == 0) return invalid_argument("the mesh has an axis of extent 0");
  if (size > kMaxWorldSize) {
    return invalid_argument(
        fmt::format("the mesh has {} ranks, the limit is {}", size, kMaxWorldSize));
  }
  SHW_RETURN_IF_ERROR(check_axis_names(mesh));
  return size;
}

Result<std::vector<int32_t>> positions_by_rank(const Mesh& mesh, int64_t mesh_size) {
  std::vector<int32_t> order;
  if (mesh.ranks.empty()) return order;
  if (static_cast<int64_t>(mesh.ranks.size()) != mesh_size) {
    return invalid_argument(
        fmt::format("the mesh lists {} ranks, its shape has {}", mesh.ranks.size(), mesh_size));
  }
  order.resize(mesh.ranks.size());
  std::iota(order.begin(), order.end(), 0);
  const auto rank_at = [&](int32_t position) { return mesh.ranks[static_cast<size_t>(position)]; };
  std::ranges::sort(order, {}, rank_at);
  if (rank_at(order.front()) < 0) {
    return invalid_argument(
        fmt::format("the mesh lists the negative rank {}", rank_at(order.front())));
  }
  const auto doubled = std::ranges::adjacent_find(order, {}, rank_at);
  if (doubled != order.end()) {
    return invalid_argument(fmt::format("the mesh lists rank {} twice", rank_at(*doubled)));
  }
  return order;
}

std::string axis_text(const Mesh& mesh, size_t axis) {
  if (mesh.axis_names.empty()) return fmt::format("axis {}", axis);
  return fmt::format("axis {} '{}'", axis, escape_text(mesh.axis_names[axis]));
}

}  // namespace shardwright

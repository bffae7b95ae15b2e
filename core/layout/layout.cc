// SPDX-License-Identifier: Apache-2.0
//
// The shard rule is that of torch.distributed.tensor (Shard and its local shape and offset
// computation, 2.x): the first mesh axes cut first, and each further axis cuts what the earlier
// ones left. The offset of an empty shard is the end of what was cut.
#include "core/layout/layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/base/text.h"

namespace shardwright {
namespace {

Status check_axis_names(const Mesh& mesh) {
  if (mesh.axis_names.empty()) return {};
  if (mesh.axis_names.size() != mesh.shape.size()) {
    return invalid_argument(fmt::format("the mesh has {} axis names for {} axes",
                                        mesh.axis_names.size(), mesh.shape.size()));
  }
  for (size_t i = 0; i < mesh.axis_names.size(); ++i) {
    const auto& name = mesh.axis_names[i];
    if (!is_valid_utf8(name))
      return invalid_argument(fmt::format("the name of mesh axis {} is not UTF-8", i));
    if (std::find(mesh.axis_names.begin(), mesh.axis_names.begin() + static_cast<std::ptrdiff_t>(i),
                  name) != mesh.axis_names.begin() + static_cast<std::ptrdiff_t>(i)) {
      return invalid_argument(fmt::format("two mesh axes are called '{}'", escape_text(name)));
    }
  }
  return {};
}

Result<int64_t> check_mesh_shape(const Mesh& mesh) {
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
  return size;
}

// Positions ordered by rank.
Result<std::vector<int32_t>> order_ranks(const std::vector<int32_t>& ranks, int64_t mesh_size) {
  std::vector<int32_t> order;
  if (ranks.empty()) return order;
  if (static_cast<int64_t>(ranks.size()) != mesh_size) {
    return invalid_argument(
        fmt::format("the mesh lists {} ranks, its shape has {}", ranks.size(), mesh_size));
  }
  order.resize(ranks.size());
  std::iota(order.begin(), order.end(), 0);
  const auto rank_at = [&ranks](int32_t position) { return ranks[static_cast<size_t>(position)]; };
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return rank_at(a) < rank_at(b); });
  if (rank_at(order.front()) < 0) {
    return invalid_argument(
        fmt::format("the mesh lists the negative rank {}", rank_at(order.front())));
  }
  for (size_t i = 1; i < order.size(); ++i) {
    if (rank_at(order[i]) == rank_at(order[i - 1])) {
      return invalid_argument(fmt::format("the mesh lists rank {} twice", rank_at(order[i])));
    }
  }
  return order;
}

Status check_placements(const std::vector<Placement>& placements, size_t axis_count) {
  if (placements.size() != axis_count) {
    return invalid_argument(fmt::format("the layout has {} placements for {} mesh axes",
                                        placements.size(), axis_count));
  }
  for (size_t i = 0; i < placements.size(); ++i) {
    switch (placements[i].kind) {
      case PlacementKind::kReplicate:
      case PlacementKind::kShard:
        break;
      case PlacementKind::kStridedShard:
        return unimplemented(
            fmt::format("placement {} is StridedShard, which is not supported", i));
      case PlacementKind::kPartial:
        return unimplemented(
            fmt::format("placement {} is Partial: reduce the tensor before it is described", i));
      default:
        return invalid_argument(fmt::format("placement {} has the unknown kind {}", i,
                                            static_cast<int32_t>(placements[i].kind)));
    }
  }
  return {};
}

// Cuts [*offset, *offset + *size) into parts and keeps the given one.
void keep_shard(int64_t parts, int64_t part, int64_t* offset, int64_t* size) {
  const int64_t step = *size / parts + (*size % parts == 0 ? 0 : 1);
  // part < parts <= kMaxWorldSize and step <= size / parts + 1, so the product may pass 63 bits
  // only for huge sizes.
  int64_t begin = 0;
  if (!checked_multiply(part, step, &begin)) begin = *size;
  begin = std::min(begin, *size);
  *offset += begin;
  *size = std::min(step, *size - begin);
}

}  // namespace

Result<std::shared_ptr<const Layout>> Layout::create(Mesh mesh, std::vector<Placement> placements) {
  SHW_ASSIGN_OR_RETURN(const int64_t size, check_mesh_shape(mesh));
  SHW_RETURN_IF_ERROR(check_axis_names(mesh));
  SHW_ASSIGN_OR_RETURN(std::vector<int32_t> order, order_ranks(mesh.ranks, size));
  SHW_RETURN_IF_ERROR(check_placements(placements, mesh.shape.size()));
  auto layout = std::shared_ptr<Layout>(new Layout());  // co-owned by the entries that it describes
  layout->mesh_ = std::move(mesh);
  layout->placements_ = std::move(placements);
  layout->ranks_by_value_ = std::move(order);
  layout->mesh_size_ = size;
  return std::shared_ptr<const Layout>(std::move(layout));
}

int64_t Layout::position_of(int32_t rank) const {
  if (mesh_.ranks.empty()) return rank >= 0 && rank < mesh_size_ ? rank : -1;
  const auto rank_at = [this](int32_t position) {
    return mesh_.ranks[static_cast<size_t>(position)];
  };
  const auto found = std::lower_bound(
      ranks_by_value_.begin(), ranks_by_value_.end(), rank,
      [&](int32_t position, int32_t wanted) { return rank_at(position) < wanted; });
  return found == ranks_by_value_.end() || rank_at(*found) != rank ? -1 : *found;
}

bool Layout::contains(int32_t rank) const {
  return position_of(rank) >= 0;
}

Result<std::vector<Piece>> Layout::pieces(std::span<const int64_t> global_shape,
                                          int32_t rank) const {
  SHW_RETURN_IF_ERROR(checked_element_count(global_shape).status());
  const auto dimension_count = static_cast<int64_t>(global_shape.size());
  for (size_t i = 0; i < placements_.size(); ++i) {
    if (placements_[i].kind != PlacementKind::kShard) continue;
    if (placements_[i].dim >= dimension_count || placements_[i].dim < -dimension_count) {
      return invalid_argument(
          fmt::format("placement {} shards dimension {} of a tensor of {} dimensions", i,
                      placements_[i].dim, dimension_count));
    }
  }
  const int64_t position = position_of(rank);
  if (position < 0) return std::vector<Piece>();

  Box box = whole_box(global_shape);
  int64_t below = mesh_size_;  // ranks per step of the axis
  for (size_t i = 0; i < placements_.size(); ++i) {
    below /= mesh_.shape[i];
    const int64_t coordinate = position / below % mesh_.shape[i];
    if (placements_[i].kind != PlacementKind::kShard) continue;
    const int64_t dim =
        placements_[i].dim < 0 ? placements_[i].dim + dimension_count : placements_[i].dim;
    const auto d = static_cast<size_t>(dim);
    keep_shard(mesh_.shape[i], coordinate, &box.offsets[d], &box.sizes[d]);
  }
  return std::vector<Piece>{Piece{std::move(box), 0}};
}

}  // namespace shardwright

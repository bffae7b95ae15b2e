// SPDX-License-Identifier: Apache-2.0
//
// Sources of the rules: placements and their local shapes and offsets of torch.distributed.tensor
// (2.15), tensor_map of HyperParallel's Layout. Different on purpose: strided shards give all of
// their boxes and not the first one, and tensor maps may split unevenly.
#include "core/layout/layout.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/layout/split.h"

namespace shardwright {
namespace {

constexpr std::string_view kInterleavedAxis = "interleaved_parallel";

Result<Cut> cut_of(const Placement& placement, size_t axis) {
  const auto number = static_cast<int32_t>(axis);
  switch (placement.kind) {
    case PlacementKind::kShard:
      return Cut{number, placement.dim, 1};
    case PlacementKind::kStridedShard:
      return Cut{number, placement.dim, placement.factor};
    case PlacementKind::kFlat:
      return Cut{number, kFlatDim, 1};
    case PlacementKind::kPartial:
      return failed_precondition(
          fmt::format("placement {} is Partial: reduce the tensor before it is described", axis));
    default:
      return invalid_argument(fmt::format("placement {} has the unknown kind {}", axis,
                                          static_cast<int32_t>(placement.kind)));
  }
}

// An entry of a tensor map as an axis from the left.
Result<int32_t> mapped_axis(const Mesh& mesh, size_t dim, int32_t entry) {
  const auto axis_count = static_cast<int32_t>(mesh.shape.size());
  if (entry >= 0 && entry < axis_count) return axis_count - 1 - entry;
  return invalid_argument(fmt::format(
      "dimension {} of the tensor map names mesh axis {} from the right, the mesh has {} axes", dim,
      entry, axis_count));
}

Status check_not_interleaved(const Mesh& mesh) {
  for (size_t axis = 0; axis < mesh.axis_names.size(); ++axis) {
    if (mesh.axis_names[axis] != kInterleavedAxis) continue;
    return unimplemented(
        fmt::format("mesh {} splits on one device, which is not supported", axis_text(mesh, axis)));
  }
  return {};
}

// Checks the cuts against the mesh; the bits of their axes.
Result<uint64_t> checked_cut_axes(const Mesh& mesh, const std::vector<Cut>& cuts) {
  uint64_t used = 0;
  for (const Cut& cut : cuts) {
    if (cut.axis < 0 || static_cast<size_t>(cut.axis) >= mesh.shape.size()) {
      return invalid_argument(fmt::format("a cut names mesh axis {}, the mesh has {} axes",
                                          cut.axis, mesh.shape.size()));
    }
    const auto axis = static_cast<size_t>(cut.axis);
    if ((used >> axis & 1) != 0) {
      return invalid_argument(
          fmt::format("mesh {} is used twice by the layout", axis_text(mesh, axis)));
    }
    used |= uint64_t{1} << axis;
    if (cut.factor < 1 || cut.factor > kMaxWorldSize) {
      return invalid_argument(fmt::format("the stride factor {} of mesh {} is not 1 to {}",
                                          cut.factor, axis_text(mesh, axis), kMaxWorldSize));
    }
    if (cut.dim == kFlatDim && cut.factor != 1) {
      return invalid_argument(
          fmt::format("mesh {} cuts flat, which takes no stride", axis_text(mesh, axis)));
    }
  }
  return used;
}

}  // namespace

Result<Layout::Ptr> Layout::create(Mesh mesh, const std::vector<Placement>& placements) {
  if (placements.size() != mesh.shape.size()) {
    return invalid_argument(fmt::format("the layout has {} placements for {} mesh axes",
                                        placements.size(), mesh.shape.size()));
  }
  std::vector<Cut> cuts;
  for (size_t axis = 0; axis < placements.size(); ++axis) {
    if (placements[axis].kind == PlacementKind::kReplicate) continue;
    SHW_ASSIGN_OR_RETURN(const Cut cut, cut_of(placements[axis], axis));
    cuts.push_back(cut);
  }
  return create_cut(std::move(mesh), std::move(cuts), kAnyTensorRank);
}

Result<Layout::Ptr> Layout::create_mapped(Mesh mesh, const TensorMap& map) {
  SHW_RETURN_IF_ERROR(check_not_interleaved(mesh));
  std::vector<Cut> cuts;
  for (size_t dim = 0; dim < map.size(); ++dim) {
    for (const int32_t entry : map[dim]) {
      if (entry == -1) continue;
      SHW_ASSIGN_OR_RETURN(const int32_t axis, mapped_axis(mesh, dim, entry));
      cuts.push_back({axis, static_cast<int32_t>(dim), 1});
    }
  }
  return create_cut(std::move(mesh), std::move(cuts), static_cast<int32_t>(map.size()));
}

Result<Layout::Ptr> Layout::create_cut(Mesh mesh, std::vector<Cut> cuts, int32_t tensor_rank) {
  if (tensor_rank < kAnyTensorRank || tensor_rank > kMaxTensorRank) {
    return invalid_argument(fmt::format("a layout for tensors of {} dimensions, the limit is {}",
                                        tensor_rank, kMaxTensorRank));
  }
  auto layout = std::shared_ptr<Layout>(new Layout());
  SHW_ASSIGN_OR_RETURN(layout->mesh_size_, checked_mesh_size(mesh));
  SHW_ASSIGN_OR_RETURN(layout->positions_by_rank_, positions_by_rank(mesh, layout->mesh_size_));
  SHW_ASSIGN_OR_RETURN(layout->cut_axes_, checked_cut_axes(mesh, cuts));
  std::ranges::stable_partition(cuts, [](const Cut& cut) { return cut.dim != kFlatDim; });
  layout->axis_strides_ = Dims(mesh.shape.size(), 1);
  for (size_t axis = mesh.shape.size(); axis-- > 1;) {
    layout->axis_strides_[axis - 1] = layout->axis_strides_[axis] * mesh.shape[axis];
  }
  layout->strided_ = std::ranges::any_of(cuts, [](const Cut& cut) { return cut.factor > 1; });
  layout->tensor_rank_ = tensor_rank;
  layout->mesh_ = std::move(mesh);
  layout->cuts_ = std::move(cuts);
  return Ptr(std::move(layout));
}

int64_t Layout::position_of(int32_t rank) const {
  if (mesh_.ranks.empty()) return rank >= 0 && rank < mesh_size_ ? rank : -1;
  const auto found = std::ranges::lower_bound(positions_by_rank_, rank, {},
                                              [this](int32_t p) { return rank_at(p); });
  return found == positions_by_rank_.end() || rank_at(*found) != rank ? -1 : *found;
}

int32_t Layout::rank_at(int64_t position) const {
  return mesh_.ranks.empty() ? static_cast<int32_t>(position)
                             : mesh_.ranks[static_cast<size_t>(position)];
}

Result<std::vector<Piece>> Layout::pieces(std::span<const int64_t> global_shape,
                                          int32_t rank) const {
  SHW_ASSIGN_OR_RETURN(const SplitView split, SplitView::create(*this, global_shape));
  std::vector<Piece> pieces;
  const int64_t position = position_of(rank);
  if (position >= 0) SHW_RETURN_IF_ERROR(split.append_pieces(position, &pieces));
  return pieces;
}

Result<Dims> Layout::local_shape(std::span<const int64_t> global_shape, int32_t rank) const {
  SHW_ASSIGN_OR_RETURN(const SplitView split, SplitView::create(*this, global_shape));
  const int64_t position = position_of(rank);
  return position >= 0 ? split.local_shape(position) : Dims{0};
}

}  // namespace shardwright

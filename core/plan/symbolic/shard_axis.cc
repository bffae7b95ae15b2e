// SPDX-License-Identifier: Apache-2.0
//
// Layouts to axes. The stride of a mesh axis is read off the rank's neighbour on it; the phase makes
// the rank's own coordinate right, so an irregular mesh costs further distinct descriptions and
// never correctness.
#include "core/plan/symbolic/shard_axis.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "core/plan/symbolic/shard_cut_internal.h"

namespace shardwright::plan {
namespace {

// Row-major position of rank in the mesh, or -1.
int64_t position_in(const Mesh& mesh, int32_t rank) {
  if (mesh.ranks.empty()) return rank >= 0 && rank < element_count_of(mesh.shape) ? rank : -1;
  const auto found = std::find(mesh.ranks.begin(), mesh.ranks.end(), rank);
  return found == mesh.ranks.end() ? -1 : found - mesh.ranks.begin();
}

int32_t rank_at(const Mesh& mesh, int64_t position) {
  return mesh.ranks.empty() ? static_cast<int32_t>(position)
                            : mesh.ranks[static_cast<size_t>(position)];
}

struct AxisPlace {
  int64_t extent = 0;
  int64_t below = 0;     // positions per step of the axis
  int64_t position = 0;  // of the rank in the mesh
};

ShardAxis axis_of(const Mesh& mesh, const AxisPlace& place, int32_t dim) {
  const int64_t coordinate = place.position / place.below % place.extent;
  const int64_t neighbour =
      coordinate + 1 < place.extent ? place.position + place.below : place.position - place.below;
  const int32_t rank = rank_at(mesh, place.position);
  const int32_t stride = std::abs(rank_at(mesh, neighbour) - rank);
  const int64_t drift = (coordinate - rank / stride) % place.extent;
  return {dim, static_cast<int32_t>(place.extent), stride,
          static_cast<int32_t>(drift < 0 ? drift + place.extent : drift)};
}

}  // namespace

Result<std::optional<std::vector<ShardAxis>>> shard_axes_of(const Layout& layout,
                                                            size_t dimension_count, int32_t rank) {
  const Mesh& mesh = layout.mesh();
  const auto dimensions = static_cast<int64_t>(dimension_count);
  const int64_t position = position_in(mesh, rank);
  int64_t below = element_count_of(mesh.shape);
  std::vector<ShardAxis> axes;
  for (size_t i = 0; i < mesh.shape.size(); ++i) {
    below /= mesh.shape[i];
    const Placement& placement = layout.placements()[i];
    if (placement.kind != PlacementKind::kShard) continue;
    if (placement.dim >= dimensions || placement.dim < -dimensions) {
      return invalid_argument(
          fmt::format("placement {} shards dimension {} of a tensor of {} dimensions", i,
                      placement.dim, dimensions));
    }
    if (mesh.shape[i] == 1 || position < 0) continue;
    const auto dim =
        static_cast<int32_t>(placement.dim < 0 ? placement.dim + dimensions : placement.dim);
    axes.push_back(axis_of(mesh, {mesh.shape[i], below, position}, dim));
  }
  if (position < 0) return std::optional<std::vector<ShardAxis>>();
  return std::optional<std::vector<ShardAxis>>(std::move(axes));
}

Box box_of_axes(std::span<const ShardAxis> axes, std::span<const int64_t> shape, int32_t rank) {
  Box box = whole_box(shape);
  for (const ShardAxis& axis : axes) {
    const auto d = static_cast<size_t>(axis.dim);
    const internal::Cut cut = internal::cut_of(box.sizes[d], axis.extent);
    const int64_t part = axis_coordinate(axis, rank);
    box.offsets[d] += internal::part_offset(cut, part);
    box.sizes[d] = internal::part_size(cut, part);
  }
  return box;
}

}  // namespace shardwright::plan

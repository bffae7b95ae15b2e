// SPDX-License-Identifier: Apache-2.0
//
// layout.h: meshes with placements, and the boxes that they give to a rank.
#include "shardwright/layout.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"
#include "core/base/limits.h"

namespace shardwright::capi {
namespace {

Result<Mesh> read_mesh(const shw_layout_spec& spec) {
  const auto axes = static_cast<uint64_t>(spec.mesh_ndim);
  Mesh mesh;
  SHW_ASSIGN_OR_RETURN(const auto shape, list_argument(spec.mesh_shape, axes, "mesh_shape"));
  mesh.shape = Dims(shape);
  if (spec.axis_name_offsets != nullptr) {
    SHW_ASSIGN_OR_RETURN(const auto names, TextList::create(spec.axis_names, spec.axis_name_offsets,
                                                            axes, "axis_names"));
    for (uint64_t i = 0; i < axes; ++i) mesh.axis_names.emplace_back(names.at(i));
  }
  SHW_ASSIGN_OR_RETURN(const auto ranks, list_argument(spec.ranks, spec.rank_count, "ranks"));
  mesh.ranks.assign(ranks.begin(), ranks.end());
  return mesh;
}

Result<std::vector<Placement>> read_placements(const shw_layout_spec& spec) {
  const auto axes = static_cast<uint64_t>(spec.mesh_ndim);
  SHW_ASSIGN_OR_RETURN(const auto kinds,
                       list_argument(spec.placement_kinds, axes, "placement_kinds"));
  std::vector<Placement> placements(axes);
  for (uint64_t i = 0; i < axes; ++i) {
    SHW_RETURN_IF_ERROR(option_in_range(kinds[i], SHW_PLACEMENT_PARTIAL, "placement_kinds"));
    placements[i].kind = static_cast<PlacementKind>(kinds[i]);
    const bool needs_dim = placements[i].kind == PlacementKind::kShard ||
                           placements[i].kind == PlacementKind::kStridedShard;
    if (needs_dim && spec.placement_dims == nullptr) return null_argument("placement_dims");
    if (spec.placement_dims != nullptr) placements[i].dim = spec.placement_dims[i];
    if (spec.placement_factors != nullptr) placements[i].factor = spec.placement_factors[i];
  }
  return placements;
}

Result<std::vector<Piece>> layout_pieces(const shw_layout* layout, const int64_t* shape,
                                         int32_t ndim, int32_t rank) {
  SHW_ASSIGN_OR_RETURN(const auto impl, need(layout, "layout"));
  if (ndim < 0 || ndim > kMaxTensorRank) {
    return bad_argument("ndim", fmt::format("{} is not between 0 and {}", ndim, kMaxTensorRank));
  }
  SHW_ASSIGN_OR_RETURN(const auto extents,
                       list_argument(shape, static_cast<uint64_t>(ndim), "shape"));
  return impl->layout->pieces(extents, rank);
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
using shardwright::Status;

extern "C" {

void shw_layout_spec_init(shw_layout_spec* spec, uint32_t struct_size) noexcept {
  capi::init_struct(spec, struct_size);
}

shw_status shw_layout_create(const shw_layout_spec* spec, shw_layout** out,
                             shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    shw_layout_spec copy;
    SHW_RETURN_IF_ERROR(capi::read_struct(spec, "spec", &copy));
    if (copy.mesh_ndim < 1 || copy.mesh_ndim > shardwright::kMaxTensorRank) {
      return capi::bad_argument(
          "mesh_ndim",
          fmt::format("{} is not between 1 and {}", copy.mesh_ndim, shardwright::kMaxTensorRank));
    }
    SHW_ASSIGN_OR_RETURN(auto mesh, capi::read_mesh(copy));
    SHW_ASSIGN_OR_RETURN(auto placements, capi::read_placements(copy));
    auto impl = std::make_shared<capi::LayoutImpl>();
    SHW_ASSIGN_OR_RETURN(impl->layout,
                         shardwright::Layout::create(std::move(mesh), std::move(placements)));
    *out = capi::make_handle<shw_layout>(std::move(impl));
    return {};
  });
}

uint64_t shw_layout_rank_count(const shw_layout* layout) noexcept {
  const auto* impl = capi::peek(layout);
  if (impl == nullptr) return 0;
  uint64_t count = 1;
  for (const int64_t extent : impl->layout->mesh().shape) count *= static_cast<uint64_t>(extent);
  return count;
}

shw_status shw_layout_box_count(const shw_layout* layout, const int64_t* shape, int32_t ndim,
                                int32_t rank, uint64_t* out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto pieces, capi::layout_pieces(layout, shape, ndim, rank));
    *out = pieces.size();
    return {};
  });
}

shw_status shw_layout_boxes(const shw_layout* layout, const int64_t* shape, int32_t ndim,
                            int32_t rank, int64_t* boxes, uint64_t capacity, uint64_t* size,
                            shw_error** err) noexcept {
  return capi::guarded_answer(err, [&](shw_status* answer) -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(size, "size"));
    SHW_ASSIGN_OR_RETURN(const auto pieces, capi::layout_pieces(layout, shape, ndim, rank));
    const uint64_t needed = pieces.size() * 2 * static_cast<uint64_t>(ndim);
    if (needed > capacity) {
      *answer = SHW_BUFFER_TOO_SMALL;
      *size = needed;
      return {};
    }
    if (needed != 0) SHW_RETURN_IF_ERROR(capi::need_pointer(boxes, "boxes"));
    for (const shardwright::Piece& piece : pieces) {
      boxes = std::copy(piece.box.offsets.begin(), piece.box.offsets.end(), boxes);
      boxes = std::copy(piece.box.sizes.begin(), piece.box.sizes.end(), boxes);
    }
    *size = needed;
    return {};
  });
}

void shw_layout_release(shw_layout* layout) noexcept {
  capi::release_handle(layout);
}

}  // extern "C"

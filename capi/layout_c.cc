// SPDX-License-Identifier: Apache-2.0
//
// layout.h: meshes with placements or tensor maps, and what they give to a rank.
#include "shardwright/layout.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"
#include "capi/box_list.h"
#include "capi/layout_spec.h"
#include "core/base/limits.h"

namespace shardwright::capi {

Result<Mesh> read_mesh(const shw_layout_spec& spec) {
  const auto axes = static_cast<uint64_t>(spec.mesh_ndim);
  Mesh mesh;
  SHW_ASSIGN_OR_RETURN(const auto shape, list_argument(spec.mesh_shape, axes, "mesh_shape"));
  mesh.shape = Dims(shape);
  if (spec.axis_name_offsets != nullptr) {
    SHW_ASSIGN_OR_RETURN(
        const auto names,
        text_list_argument(spec.axis_names, spec.axis_name_offsets, axes, "axis_names"));
    for (uint64_t i = 0; i < axes; ++i) mesh.axis_names.emplace_back(names.at(i));
  }
  SHW_ASSIGN_OR_RETURN(const auto ranks, list_argument(spec.ranks, spec.rank_count, "ranks"));
  mesh.ranks.assign(ranks.begin(), ranks.end());
  return mesh;
}

Result<Mesh> read_mesh_only(const shw_layout_spec& spec) {
  const bool cuts = spec.placement_kinds != nullptr || spec.placement_dims != nullptr ||
                    spec.placement_factors != nullptr || spec.tensor_map != nullptr ||
                    spec.tensor_map_offsets != nullptr || spec.tensor_ndim != 0;
  if (cuts) return bad_argument("spec", "a mesh has no placements and no tensor map");
  return read_mesh(spec);
}

namespace {

Result<std::vector<Placement>> read_placements(const shw_layout_spec& spec) {
  const auto axes = static_cast<uint64_t>(spec.mesh_ndim);
  SHW_ASSIGN_OR_RETURN(const auto kinds,
                       list_argument(spec.placement_kinds, axes, "placement_kinds"));
  std::vector<Placement> placements(axes);
  for (uint64_t i = 0; i < axes; ++i) {
    SHW_RETURN_IF_ERROR(option_in_range(kinds[i], SHW_PLACEMENT_FLAT, "placement_kinds"));
    placements[i].kind = static_cast<PlacementKind>(kinds[i]);
    const bool needs_dim = placements[i].kind == PlacementKind::kShard ||
                           placements[i].kind == PlacementKind::kStridedShard;
    if (needs_dim && spec.placement_dims == nullptr) return null_argument("placement_dims");
    if (spec.placement_dims != nullptr) placements[i].dim = spec.placement_dims[i];
    if (placements[i].kind != PlacementKind::kStridedShard) continue;
    SHW_RETURN_IF_ERROR(need_pointer(spec.placement_factors, "placement_factors"));
    placements[i].factor = spec.placement_factors[i];
  }
  return placements;
}

Result<TensorMap> read_tensor_map(const shw_layout_spec& spec) {
  if (spec.placement_kinds != nullptr) {
    return bad_argument("tensor_map", "give placements or a tensor map, not both");
  }
  if (spec.tensor_ndim < 0 || spec.tensor_ndim > kMaxTensorRank) {
    return bad_argument(
        "tensor_ndim", fmt::format("{} is not between 0 and {}", spec.tensor_ndim, kMaxTensorRank));
  }
  TensorMap map(static_cast<size_t>(spec.tensor_ndim));
  for (size_t dim = 0; dim < map.size(); ++dim) {
    const uint64_t begin = spec.tensor_map_offsets[dim];
    const uint64_t end = spec.tensor_map_offsets[dim + 1];
    if (begin > end || end - begin > static_cast<uint64_t>(kMaxTensorRank)) {
      return bad_argument("tensor_map_offsets",
                          fmt::format("{} to {} is no list of mesh axes", begin, end));
    }
    if (begin != end) SHW_RETURN_IF_ERROR(need_pointer(spec.tensor_map, "tensor_map"));
    map[dim].assign(spec.tensor_map + begin, spec.tensor_map + end);
  }
  return map;
}

Result<Layout::Ptr> read_layout(const shw_layout_spec& spec) {
  SHW_ASSIGN_OR_RETURN(auto mesh, read_mesh(spec));
  if (spec.tensor_map_offsets != nullptr) {
    SHW_ASSIGN_OR_RETURN(const auto map, read_tensor_map(spec));
    return Layout::create_mapped(std::move(mesh), map);
  }
  SHW_ASSIGN_OR_RETURN(const auto placements, read_placements(spec));
  return Layout::create(std::move(mesh), placements);
}

// A layout and the shape of a tensor.
struct Question {
  const Layout* layout = nullptr;
  std::span<const int64_t> shape;
};

Result<Question> read_question(const shw_layout* layout, const int64_t* shape, int32_t ndim) {
  SHW_ASSIGN_OR_RETURN(const auto impl, need(layout, "layout"));
  if (ndim < 0 || ndim > kMaxTensorRank) {
    return bad_argument("ndim", fmt::format("{} is not between 0 and {}", ndim, kMaxTensorRank));
  }
  SHW_ASSIGN_OR_RETURN(const auto extents,
                       list_argument(shape, static_cast<uint64_t>(ndim), "shape"));
  return Question{impl->layout.get(), extents};
}

Result<std::vector<Piece>> layout_pieces(const shw_layout* layout, const int64_t* shape,
                                         int32_t ndim, int32_t rank) {
  SHW_ASSIGN_OR_RETURN(const Question question, read_question(layout, shape, ndim));
  return question.layout->pieces(question.shape, rank);
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
    auto impl = std::make_shared<capi::LayoutImpl>();
    SHW_ASSIGN_OR_RETURN(impl->layout, capi::read_layout(copy));
    *out = capi::make_handle<shw_layout>(std::move(impl));
    return {};
  });
}

uint64_t shw_layout_rank_count(const shw_layout* layout) noexcept {
  const auto* impl = capi::peek(layout);
  return impl == nullptr ? 0 : static_cast<uint64_t>(impl->layout->rank_count());
}

shw_bool shw_layout_contains(const shw_layout* layout, int32_t rank) noexcept {
  const auto* impl = capi::peek(layout);
  return impl != nullptr && impl->layout->contains(rank) ? 1 : 0;
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
    return capi::write_boxes(pieces, {"boxes", boxes, capacity, size, nullptr}, answer);
  });
}

shw_status shw_layout_local_offsets(const shw_layout* layout, const int64_t* shape, int32_t ndim,
                                    int32_t rank, int64_t* offsets, uint64_t capacity,
                                    uint64_t* size, shw_error** err) noexcept {
  return capi::guarded_answer(err, [&](shw_status* answer) -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(size, "size"));
    SHW_ASSIGN_OR_RETURN(const auto pieces, capi::layout_pieces(layout, shape, ndim, rank));
    std::vector<int64_t> found;
    found.reserve(pieces.size());
    for (const shardwright::Piece& piece : pieces) found.push_back(piece.local_offset_elements);
    return capi::write_values(found, {"offsets", offsets, capacity, size, nullptr}, answer);
  });
}

shw_status shw_layout_local_shape(const shw_layout* layout, const int64_t* shape, int32_t ndim,
                                  int32_t rank, int64_t* extents, uint64_t capacity, uint64_t* size,
                                  shw_error** err) noexcept {
  return capi::guarded_answer(err, [&](shw_status* answer) -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(size, "size"));
    SHW_ASSIGN_OR_RETURN(const auto question, capi::read_question(layout, shape, ndim));
    SHW_ASSIGN_OR_RETURN(const auto local, question.layout->local_shape(question.shape, rank));
    return capi::write_values(local, {"extents", extents, capacity, size, nullptr}, answer);
  });
}

void shw_layout_release(shw_layout* layout) noexcept {
  capi::release_handle(layout);
}

}  // extern "C"

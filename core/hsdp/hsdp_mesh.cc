// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/hsdp_mesh.h"

#include <algorithm>

#include <fmt/format.h>

namespace shardwright::hsdp {
namespace {

Result<int64_t> position_of(const Mesh& mesh, int64_t mesh_size, int32_t rank) {
  if (mesh.ranks.empty()) {
    if (rank >= 0 && rank < mesh_size) return int64_t{rank};
  } else {
    const auto found = std::find(mesh.ranks.begin(), mesh.ranks.end(), rank);
    if (found != mesh.ranks.end()) return int64_t{found - mesh.ranks.begin()};
  }
  return invalid_argument(fmt::format("rank {} is not in the mesh of {} ranks", rank, mesh_size));
}

}  // namespace

Result<std::shared_ptr<HsdpMesh>> HsdpMesh::create(Mesh mesh, int32_t rank) {
  SHW_ASSIGN_OR_RETURN(const int64_t mesh_size, checked_mesh_size(mesh));
  SHW_ASSIGN_OR_RETURN(const std::vector<int32_t> positions, positions_by_rank(mesh, mesh_size));
  SHW_ASSIGN_OR_RETURN(const int64_t position, position_of(mesh, mesh_size, rank));
  auto result = std::shared_ptr<HsdpMesh>(new HsdpMesh());
  result->axes_.resize(mesh.shape.size());
  int64_t stride = 1;
  for (size_t axis = mesh.shape.size(); axis-- > 0;) {
    Axis& each = result->axes_[axis];
    each.size = static_cast<int32_t>(mesh.shape[axis]);
    each.stride = stride;
    each.coordinate = static_cast<int32_t>(position / stride % each.size);
    stride *= each.size;
  }
  result->mesh_ = std::move(mesh);
  result->rank_ = rank;
  result->position_ = position;
  return result;
}

int32_t HsdpMesh::axis_size(int32_t axis) const {
  return axis < 0 ? 1 : axes_[static_cast<size_t>(axis)].size;
}

int32_t HsdpMesh::coordinate(int32_t axis) const {
  return axis < 0 ? 0 : axes_[static_cast<size_t>(axis)].coordinate;
}

int32_t HsdpMesh::rank_at(int32_t axis, int32_t coordinate) const {
  if (axis < 0) return rank_;
  const Axis& each = axes_[static_cast<size_t>(axis)];
  const int64_t position = position_ + (coordinate - each.coordinate) * each.stride;
  return mesh_.ranks.empty() ? static_cast<int32_t>(position)
                             : mesh_.ranks[static_cast<size_t>(position)];
}

Status HsdpMesh::check_axis(int32_t axis, const collective::CommunicatorPtr& communicator) const {
  if (axis < 0 || static_cast<size_t>(axis) >= axes_.size())
    return invalid_argument(
        fmt::format("axis {} is not one of the {} of the mesh", axis, axes_.size()));
  if (communicator == nullptr)
    return invalid_argument(
        fmt::format("no communicator for {}", axis_text(mesh_, static_cast<size_t>(axis))));
  return {};
}

Status HsdpMesh::set_communicator(int32_t axis, CommunicatorLane lane,
                                  collective::CommunicatorPtr communicator) {
  SHW_RETURN_IF_ERROR(check_axis(axis, communicator));
  Axis& each = axes_[static_cast<size_t>(axis)];
  if (communicator->size() != each.size || communicator->rank() != each.coordinate)
    return invalid_argument(
        fmt::format("communicator '{}' is rank {} of {}, {} has {} ranks and this one is number {}",
                    communicator->name(), communicator->rank(), communicator->size(),
                    axis_text(mesh_, static_cast<size_t>(axis)), each.size, each.coordinate));
  (lane == CommunicatorLane::kGather ? each.gather : each.reduce) = std::move(communicator);
  return {};
}

Status HsdpMesh::set_secondary_communicator(int32_t axis,
                                            collective::CommunicatorPtr communicator) {
  SHW_RETURN_IF_ERROR(check_axis(axis, communicator));
  Axis& each = axes_[static_cast<size_t>(axis)];
  const int32_t size = communicator->size();
  if (size < 1 || each.size % size != 0 || communicator->rank() != each.coordinate % size)
    return invalid_argument(fmt::format(
        "communicator '{}' is rank {} of {}: not of neighbours of number {} of the {} ranks of {}",
        communicator->name(), communicator->rank(), size, each.coordinate, each.size,
        axis_text(mesh_, static_cast<size_t>(axis))));
  std::erase_if(each.secondary, [size](const auto& other) { return other->size() == size; });
  each.secondary.push_back(std::move(communicator));
  return {};
}

collective::CommunicatorPtr HsdpMesh::communicator(int32_t axis, CommunicatorLane lane) const {
  if (axis < 0) return nullptr;
  const Axis& each = axes_[static_cast<size_t>(axis)];
  return lane == CommunicatorLane::kReduce && each.reduce != nullptr ? each.reduce : each.gather;
}

collective::CommunicatorPtr HsdpMesh::secondary_communicator(int32_t axis, int32_t size) const {
  if (axis < 0) return nullptr;
  for (const auto& each : axes_[static_cast<size_t>(axis)].secondary)
    if (each->size() == size) return each;
  return nullptr;
}

std::vector<collective::CommunicatorPtr> HsdpMesh::all_communicators() const {
  std::vector<collective::CommunicatorPtr> result;
  for (const Axis& each : axes_) {
    if (each.gather != nullptr) result.push_back(each.gather);
    if (each.reduce != nullptr) result.push_back(each.reduce);
    result.insert(result.end(), each.secondary.begin(), each.secondary.end());
  }
  return result;
}

}  // namespace shardwright::hsdp

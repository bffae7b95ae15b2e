// SPDX-License-Identifier: Apache-2.0
//
// HsdpMesh: the device mesh of a context as one rank sees it, and the communicators along its axes.
// An axis of one rank needs none. Thread-compatible; communicators are set before the context is
// created, and again after a failure before it is reset.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/result.h"
#include "core/collective/communicator.h"
#include "core/layout/mesh.h"

namespace shardwright::hsdp {

// Numbers are those of the C surface.
enum class CommunicatorLane : int32_t { kGather = 0, kReduce = 1 };

class HsdpMesh {
 public:
  // INVALID_ARGUMENT for an unsound mesh or a rank that is not in it.
  static Result<std::shared_ptr<HsdpMesh>> create(Mesh mesh, int32_t rank);

  const Mesh& mesh() const { return mesh_; }
  int32_t rank() const { return rank_; }
  // 1 and 0 for axis -1.
  int32_t axis_size(int32_t axis) const;
  int32_t coordinate(int32_t axis) const;
  // The global rank with that coordinate on the axis and this rank's on the others.
  int32_t rank_at(int32_t axis, int32_t coordinate) const;

  // Of the ranks along the axis, in the order of their coordinates. The gathers' serves reductions
  // too unless they get their own. INVALID_ARGUMENT where size or rank do not fit the axis.
  Status set_communicator(int32_t axis, CommunicatorLane lane,
                          collective::CommunicatorPtr communicator);
  // Of n neighbours on the axis: coordinates [k n, (k + 1) n) with this rank among them. For units
  // that keep 1/n of their parameters after forward. INVALID_ARGUMENT likewise.
  Status set_secondary_communicator(int32_t axis, collective::CommunicatorPtr communicator);
  // Null where there is none.
  collective::CommunicatorPtr communicator(int32_t axis, CommunicatorLane lane) const;
  collective::CommunicatorPtr secondary_communicator(int32_t axis, int32_t size) const;
  std::vector<collective::CommunicatorPtr> all_communicators() const;

 private:
  struct Axis {
    int32_t size = 1;
    int32_t coordinate = 0;
    int64_t stride = 1;                  // in the mesh's row-major order
    collective::CommunicatorPtr gather;  // co-owned with the host
    collective::CommunicatorPtr reduce;
    std::vector<collective::CommunicatorPtr> secondary;  // of different sizes
  };

  HsdpMesh() = default;
  Status check_axis(int32_t axis, const collective::CommunicatorPtr& communicator) const;

  Mesh mesh_;
  int32_t rank_ = 0;
  int64_t position_ = 0;
  std::vector<Axis> axes_;
};

}  // namespace shardwright::hsdp

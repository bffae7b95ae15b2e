// SPDX-License-Identifier: Apache-2.0
//
// Reads meshes and placements of a description and keeps each distinct layout once.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json_tree.h"
#include "core/job_description/job_description.h"

namespace shardwright::job_description::internal {

// Typed members. noun: "a mesh". Absent members do not exist().
Status need_type(JsonValueView value, JsonType type, std::string_view noun);
Result<int64_t> read_integer(JsonValueView value, std::string_view noun, int64_t low, int64_t high);
// [0, 1, 2], or {"from": 8, "count": 4, "step": 2}.
Result<std::vector<int32_t>> read_ranks(JsonValueView value);

struct NamedMesh {
  std::string name;
  std::vector<std::string> axes;
  Dims shape;
  std::vector<int32_t> ranks;  // empty = 0, 1, 2, ...
  int32_t rank_at(int64_t position) const {
    return ranks.empty() ? static_cast<int32_t>(position) : ranks[static_cast<size_t>(position)];
  }
};

// Part of a mesh: one coordinate for some axes, -1 for the others.
using FixedAxes = std::vector<int64_t>;

class MeshReader {
 public:
  explicit MeshReader(JobDescription* job) : job_(job) {}

  // The member "meshes".
  Status read_meshes(JsonValueView meshes);
  bool empty() const { return meshes_.empty(); }
  // The mesh that an entry names with "mesh"; without one the only mesh there is.
  Result<const NamedMesh*> mesh_of(JsonValueView entry) const;
  // The placements of an entry ("placements" or "tensor_map") for a part of the mesh; placements of
  // axes that are fixed must be absent. dimension_count -1 = any.
  Result<uint32_t> layout_of(JsonValueView entry, const NamedMesh& mesh, const FixedAxes& fixed,
                             int64_t dimension_count);
  // All of these ranks hold everything.
  Result<uint32_t> layout_of_ranks(JsonValueView where, std::vector<int32_t> ranks);
  Result<uint32_t> layout_of_all_ranks(JsonValueView where);
  // Ranks that an entry lists itself must be ranks of the job.
  Status note_ranks(JsonValueView where, std::span<const int32_t> ranks);
  // Highest rank of a mesh, -1 without one.
  int32_t highest_rank() const { return highest_rank_; }
  // All layouts and boxes of a description together may list so many ranks.
  Status spend(JsonValueView where, size_t ranks);

 private:
  Result<NamedMesh> read_mesh(JsonValueView mesh) const;
  // Ranks of the part of a mesh that fixed leaves, row-major.
  static std::vector<int32_t> part_ranks(const NamedMesh& mesh, const FixedAxes& fixed);
  Result<std::vector<Placement>> read_placements(JsonValueView entry, const NamedMesh& mesh,
                                                 const FixedAxes& fixed,
                                                 int64_t dimension_count) const;
  // The part of a mesh that fixed leaves; without axes when it leaves one rank.
  Result<Mesh> part_of(JsonValueView entry, const NamedMesh& mesh, const FixedAxes& fixed);
  Result<uint32_t> keep(JsonValueView where, Mesh mesh, const std::vector<Placement>& placements);
  Result<uint32_t> keep_mapped(JsonValueView where, Mesh mesh, const TensorMap& map);
  // Number of a layout; it is made unless it is there.
  using MakeLayout = std::function<Result<Layout::Ptr>(Mesh mesh)>;
  Result<uint32_t> remember(JsonValueView where, Mesh mesh, JobLayout made, const MakeLayout& make);

  JobDescription* job_;
  std::vector<NamedMesh> meshes_;
  std::map<std::string, uint32_t, std::less<>> known_;  // text of a layout to its number
  int32_t highest_rank_ = -1;
  size_t spent_ = 0;
};

// A tensor map over these axes: a list of axes per dimension, or {"axes": [...], "map": [...]}, in
// which numbers count in another order. dimension_count -1 = any. UNIMPLEMENTED for the axis
// "interleaved_parallel".
Result<TensorMap> read_tensor_map(JsonValueView value, std::span<const std::string> axes,
                                  int64_t dimension_count);
// As read_tensor_map takes it: [1,-1,[2,0]].
std::string tensor_map_json(const TensorMap& map);

// "Shard(0)", "Replicate", "StridedShard(0, 4)", as torch prints them.
std::string placement_text(const Placement& placement);

}  // namespace shardwright::job_description::internal

// SPDX-License-Identifier: Apache-2.0
//
// Reads meshes and placements of a description and keeps each distinct layout once.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/world/json_tree.h"
#include "core/plan/world/world.h"

namespace shardwright::plan::internal {

// Fails unless every key of the object is one of the known ones; names the nearest.
Status check_keys(JsonValueView object, std::string_view noun,
                  std::span<const std::string_view> known);
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
  explicit MeshReader(World* world) : world_(world) {}

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

 private:
  Result<NamedMesh> read_mesh(JsonValueView mesh) const;
  // Ranks of the part of a mesh that fixed leaves, row-major.
  static std::vector<int32_t> part_ranks(const NamedMesh& mesh, const FixedAxes& fixed);
  // All descriptions of layouts together may list so many ranks.
  Status spend(JsonValueView where, size_t ranks);
  Result<std::vector<Placement>> read_placements(JsonValueView entry, const NamedMesh& mesh,
                                                 const FixedAxes& fixed,
                                                 int64_t dimension_count) const;
  static Result<std::vector<Placement>> read_tensor_map(JsonValueView map, const NamedMesh& mesh,
                                                        const FixedAxes& fixed,
                                                        int64_t dimension_count);
  Result<uint32_t> keep(JsonValueView where, Mesh mesh, std::vector<Placement> placements);

  World* world_;
  std::vector<NamedMesh> meshes_;
  std::map<std::string, uint32_t, std::less<>> known_;  // text of a layout to its number
  int32_t highest_rank_ = -1;
  size_t spent_ = 0;
};

// "Shard(0)", "Replicate", "StridedShard(0, 4)", as torch prints them.
std::string placement_text(const Placement& placement);

}  // namespace shardwright::plan::internal

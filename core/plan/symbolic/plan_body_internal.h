// SPDX-License-Identifier: Apache-2.0
//
// What a symbolic plan is made of, and the steps that make it:
//   1 merge_descriptions      names to groups, conflicts, replicas
//   2 classify_groups  each shared tensor to a grid and a holder map that has equally many holders
//                      everywhere, or to a list of chunks
//   3 choose_writers   owners of what several ranks hold, bytes of each rank
//   4 prove_tensors    each tensor covered exactly once
// A regular tensor costs 8 bytes beside its description; grids, holder maps and choices are shared
// by all tensors of one kind. Immutable once made.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan_options.h"
#include "core/plan/symbolic/groups_internal.h"
#include "core/plan/symbolic/holder_map_internal.h"
#include "core/plan/symbolic/listed_tensor_internal.h"
#include "core/plan/symbolic/part_index_internal.h"
#include "core/plan/symbolic/shard_grid_internal.h"

namespace shardwright::plan::internal {

inline constexpr uint32_t kListed = 0xFFFFFFFF;

struct TensorPlan {
  uint32_t grid = kListed;  // into grids, or kListed
  uint32_t map = 0;         // into maps, or into listed
  uint32_t replicas = 0;    // of a grid: holders of each column that holds elements
  uint32_t replica = 0;     // of a grid: which of them writes
};

struct SymbolicBody {
  explicit SymbolicBody(RankDescriptions of) : ranks(std::move(of)), parts(ranks) {}
  SymbolicBody(const SymbolicBody&) = delete;
  SymbolicBody& operator=(const SymbolicBody&) = delete;

  RankDescriptions ranks;
  PartIndex parts;
  OwnerRule owner = OwnerRule::kBalanced;
  MergedDescriptions merged;
  std::vector<ShardGrid> grids;
  std::vector<HolderMap> maps;
  std::vector<ListedTensor> listed;
  std::vector<TensorPlan> tensors;        // one per tensor group
  std::vector<uint32_t> object_maps;      // one per object group: a map of one column
  std::vector<uint32_t> object_replicas;  // of each object group: which of its holders writes
  std::vector<uint64_t> loads;            // bytes that each rank writes
  std::vector<bool> writes_nothing;       // ranks without any item

  const SymbolicDescription& description(const GroupMember& member) const {
    return ranks.descriptions[member.description];
  }
  const TensorRecord& record(size_t group) const {
    const GroupMember& first = merged.tensors.of(group)[0];
    return description(first).catalog.tensors[first.entry];
  }
  std::span<const int64_t> shape(size_t group) const {
    const GroupMember& first = merged.tensors.of(group)[0];
    return description(first).catalog.shape(first.entry);
  }
  std::string_view name(size_t group) const {
    const GroupMember& first = merged.tensors.of(group)[0];
    return description(first).catalog.tensor_name(first.entry);
  }
  const ObjectRecord& object(const GroupMember& member) const {
    return description(member).catalog.objects[member.entry];
  }
  uint64_t bits(size_t group) const {
    return static_cast<uint64_t>(dtype_bits(record(group).dtype));
  }

  // Rank that writes the chunk of a regular tensor in this column, which holds elements.
  uint32_t column_owner(size_t group, uint32_t column) const {
    return maps[tensors[group].map].of(column)[tensors[group].replica];
  }
  uint32_t object_owner(size_t group) const {
    return maps[object_maps[group]].of(0)[object_replicas[group]];
  }
  // The member of the group that this rank's description is.
  const GroupMember& member_of(const EntryGroups& groups, size_t group, uint32_t rank) const;
};

Status classify_groups(SymbolicBody* body);
void choose_writers(SymbolicBody* body);
Status prove_tensors(const SymbolicBody& body);

}  // namespace shardwright::plan::internal

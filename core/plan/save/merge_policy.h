// SPDX-License-Identifier: Apache-2.0
//
// What presets and owner rules mean to a merge, as one small value: the engine has no code path per
// preset.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/plan_options.h"

namespace shardwright::plan {

// Sources of the originals' behaviour: HyperParallel 0.1, remove_redundant_plans and
// build_global_plan; torch 2.15, dedup_save_plans and create_default_global_save_plan;
// megatron-core 0.16, determine_main_replica_uniform_distribution.
//
//   preset                         hyperparallel       torch               megatron
//   same box                       offsets and sizes   offsets             offsets and sizes
//   exact: order of choice         single holders,     as listed, single   not secondary first,
//                                  then as listed      holders too         few holders, bytes,
//                                                                          name, box
//   exact: weight of a chunk       its bytes or 1      tensor's bytes or 1 its bytes
//   exact: weight of an object     1                   1                   its bytes
//   exact: tie                     lowest rank         first of a Python   lowest rank
//                                                      set of the holders
//   numbers of chunks              as kept, by rank    as kept, by rank    row-major
//   boxes without elements         chunks              chunks              left out
//
// Where boxes that begin alike are one, a box without elements never stands for one that has some:
// torch may leave the empty one, and then refuses the save for its hole.
//
// With the owner rule `balanced` all presets choose as the native format does (single holders, then
// tensors by their largest shard, largest first, each in lockstep as owners.cc says) and
// number row-major. The preset native is that with `exact`, too: a box is its offsets and sizes,
// chunks are numbered row-major unless all replicas are kept, boxes without elements are left out.
struct MergePolicy {
  enum class Choice { kBalanced, kLowestRank, kSinglesThenListed, kListed, kGreedy, kAll };
  enum class Weight { kChunkBytes, kChunkBytesOrOne, kTensorBytesOrOne };  // OrOne: objects weigh 1
  // Ranks, ascending, in the order in which an original looks for the lightest of them.
  using TieOrder = std::vector<uint32_t> (*)(std::span<const uint32_t> ranks);
  enum class Numbering { kRowMajor, kAsKept };

  bool described = true;  // not a native save: an object of 0 bytes has an unknown size
  Choice choice = Choice::kBalanced;
  Weight weight = Weight::kChunkBytes;
  TieOrder tie_order = nullptr;  // null = ascending
  Numbering numbering = Numbering::kRowMajor;
  bool key_has_sizes = true;   // false: boxes that begin alike are one, the owner's counts
  bool twice_on_rank = false;  // a rank may list a box twice and then writes both
  bool keep_empty = true;      // boxes without elements are chunks too
};

// Policy of a merge of descriptions.
MergePolicy merge_policy(Preset preset, OwnerRule owner);
// Policy of a native save: the owner rule of the preset, the key, the numbering and the boxes of
// the format. INVALID_ARGUMENT for OwnerRule::kAll, which would store replicas twice.
Result<MergePolicy> native_policy(Preset preset, OwnerRule owner);

}  // namespace shardwright::plan

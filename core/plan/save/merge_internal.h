// SPDX-License-Identifier: Apache-2.0
//
// The stages of make_global_plan, each a pure function over flat columns:
//   1 check_ranks       ranks, world sizes, options
//   2 merge_entries     entries of all ranks to groups by name; conflicts
//   3 check_replicas    content digests of replicated groups
//   4 deduplicate       distinct boxes of each group with their holders
//   5 choose_owners     one holder per chunk and object; then the cover proof
//   6 lay_out_files     positions, file numbers, write lists
// A group is one entry of the merged catalog: a shared name, or one rank's own under a rank_local
// name.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/save/save_plan.h"

namespace shardwright::plan::internal {

// One rank's record of a group.
struct Member {
  uint32_t rank = 0;
  uint32_t entry = 0;  // tensor or object in that rank's catalog
};

// Groups in order of first appearance (ranks ascending, then the rank's own order), members by
// ascending rank.
struct Groups {
  std::vector<uint64_t> begins;  // one more than groups, into members
  std::vector<Member> members;
  size_t size() const { return begins.empty() ? 0 : begins.size() - 1; }
  std::span<const Member> of(size_t group) const {
    return {members.data() + begins[group], begins[group + 1] - begins[group]};
  }
};

struct MergedEntries {
  Groups tensors;
  Groups objects;
};

// Where a chunk or object comes from: candidates for the owner, ascending rank.
struct Holder {
  uint32_t rank = 0;
  uint32_t entry = 0;  // in the rank's State
  uint32_t piece = 0;  // kObjectPiece for an object
};

// The merged catalog before files are known, with the holders of every chunk and object.
struct Deduplicated {
  Catalog catalog;  // place and position not set
  std::vector<Holder> chunk_holders;
  std::vector<uint64_t> chunk_holder_begins;  // one more than chunks
  std::vector<Holder> object_holders;
  std::vector<uint64_t> object_holder_begins;  // one more than objects
  std::span<const Holder> holders_of_chunk(size_t chunk) const {
    return {chunk_holders.data() + chunk_holder_begins[chunk],
            chunk_holder_begins[chunk + 1] - chunk_holder_begins[chunk]};
  }
  std::span<const Holder> holders_of_object(size_t object) const {
    return {object_holders.data() + object_holder_begins[object],
            object_holder_begins[object + 1] - object_holder_begins[object]};
  }
};

Status check_ranks(std::span<const LocalSavePlan> locals);
Result<MergedEntries> merge_entries(std::span<const LocalSavePlan> locals);
Status check_replicas(std::span<const LocalSavePlan> locals, const MergedEntries& merged,
                      const SaveRules& rules);
Result<Deduplicated> deduplicate(std::span<const LocalSavePlan> locals,
                                 const MergedEntries& merged);

// The chosen holder of each chunk and object.
struct Owners {
  std::vector<Holder> chunks;
  std::vector<Holder> objects;
};
// Balanced: what has one holder is given first; the rest goes, largest first (ties in catalog
// order), to the holder with the fewest bytes so far (ties to the lowest rank). Object sizes are
// set to what the owner holds.
Owners choose_owners(std::span<const LocalSavePlan> locals, OwnerRule rule, Deduplicated* merged);

// Fills place and position of the catalog, file_ranks and lists. A rank's file holds, from
// kExtentAlignmentBytes on: chunks of kSlabChunkLimitBytes and more, each at a multiple of
// kExtentAlignmentBytes; then the smaller ones packed at multiples of kSlabAlignmentBytes, so that
// one read gets many; then its objects, large ones aligned likewise. Each part is in catalog order
// (tensors as first described, boxes row-major), so that a whole tensor is read in ascending
// positions. Empty objects take no bytes.
Status lay_out_files(const Owners& owners, GlobalSavePlan* plan);

}  // namespace shardwright::plan::internal

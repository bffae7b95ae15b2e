// SPDX-License-Identifier: Apache-2.0
//
// Entries of all descriptions to groups by name: what save/group_entries.cc does with one member per
// rank, here by the same function with one per distinct description. Groups are numbered in the
// order in which the explicit catalog lists them: by the first rank that has them, then that rank's
// own order. rank_local entries have no group, for each of their ranks has an entry of its own in
// the catalog.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/plan_options.h"
#include "core/plan/symbolic/rank_descriptions.h"

namespace shardwright::plan::internal {

struct GroupMember {
  uint32_t description = 0;
  uint32_t entry = 0;  // tensor or object of the description
};

inline constexpr uint32_t kLocalEntry = 0xFFFFFFFF;

struct EntryGroups {
  std::vector<uint64_t> begins;                 // one more than groups, into members
  std::vector<GroupMember> members;             // ascending description
  std::vector<std::vector<uint32_t>> group_of;  // description, entry -> group or kLocalEntry
  size_t size() const { return begins.size() - 1; }
  std::span<const GroupMember> of(size_t group) const {
    return {members.data() + begins[group], begins[group + 1] - begins[group]};
  }
};

struct MergedDescriptions {
  EntryGroups tensors;
  EntryGroups objects;
  std::vector<int32_t> first_ranks;  // of each description
};

// The conflicts and the failed comparisons of replicas that make_global_plan finds, in its words.
class PartIndex;
Result<MergedDescriptions> merge_descriptions(const RankDescriptions& ranks, const PartIndex& parts,
                                              const SaveRules& rules);

}  // namespace shardwright::plan::internal

// SPDX-License-Identifier: Apache-2.0
//
// RankDescriptions: what all ranks of a save hold, each by its own state: the distinct descriptions
// and one number per rank. Whoever describes a job from outside makes the same of it.
// Immutable value; thread-compatible.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/save_plan.h"
#include "core/plan/symbolic_description.h"

namespace shardwright::plan {

struct RankDescriptions {
  std::vector<SymbolicDescription> descriptions;  // distinct, in order of their first rank
  std::vector<Digest128> digests;                 // one per description
  std::vector<uint32_t> description_of_rank;      // one per rank
  std::vector<SymbolicPart> parts;                // of the ranks that have one, ascending rank

  int32_t rank_count() const { return static_cast<int32_t>(description_of_rank.size()); }
  const SymbolicDescription& of(int32_t rank) const {
    return descriptions[description_of_rank[static_cast<size_t>(rank)]];
  }
  // nullptr for a rank that adds nothing.
  const SymbolicPart* part_of(int32_t rank) const;
};

// Ranks that must send their description: for each distinct digest the lowest. digests: one per
// rank.
std::vector<int32_t> representative_ranks(std::span<const Digest128> digests);

// Ranks with these digests. descriptions: those of the representatives, in their order;
// parts: in any order, at most one per rank. INVALID_ARGUMENT naming ranks for a wrong count, a
// description that has another digest, a part that is missing, doubled or does not fit its
// description, options that differ.
Result<RankDescriptions> make_rank_descriptions(std::span<const Digest128> digests,
                                                std::vector<SymbolicDescription> descriptions,
                                                std::vector<SymbolicPart> parts);

// The explicit local plan of one rank: what make_local_plan says of the same state. O(its entries).
// The part fits the description.
Result<LocalSavePlan> expand_local_plan(const RankDescriptions& ranks, int32_t rank);
Result<LocalSavePlan> expand_local_plan(const LocalSymbolicPlan& plan);

}  // namespace shardwright::plan

// SPDX-License-Identifier: Apache-2.0
//
// RankDescriptions: what all ranks of a save hold, each by its own state: the distinct descriptions
// and one number per rank. Whoever describes a job from outside makes the same of it.
// Immutable value; thread-compatible.
#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace shardwright::plan

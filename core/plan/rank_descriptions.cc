// SPDX-License-Identifier: Apache-2.0
#include "core/plan/rank_descriptions.h"

#include <algorithm>

namespace shardwright::plan {

const SymbolicPart* RankDescriptions::part_of(int32_t rank) const {
  const auto found = std::ranges::lower_bound(parts, rank, {}, &SymbolicPart::rank);
  return found == parts.end() || found->rank != rank ? nullptr : &*found;
}

}  // namespace shardwright::plan

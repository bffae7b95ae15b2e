// SPDX-License-Identifier: Apache-2.0
//
// Matches described wants with a merged plan, entry by entry by name: match_boxes for every tensor,
// and the proof that each wanted box is filled. Pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/entry_arrays.h"
#include "core/plan/load/box_match.h"
#include "core/plan/plan_options.h"

namespace shardwright::plan {

struct EntryMatchRules {
  BoxMatchRules boxes;
  CoverRule cover = CoverRule::kFull;  // of each wanted box by what is found
  MissingRule missing = MissingRule::kError;
  int32_t rank = -1;  // whose rank_local entries are found, -1 = nobody's
};

// Rows grouped by wanted entry; numbers of wanted boxes go through all entries.
struct EntryMatches : BoxMatches {
  std::vector<uint64_t> entry_begins;  // first match of each entry and the end
};

// stored is a merged plan. INVALID_ARGUMENT for another shape, for a tensor that is stored as an
// object and the other way round, for elements that are filled twice or not at all; NOT_FOUND with
// the nearest names; failures of describe_local for the wants themselves.
Result<EntryMatches> match_entries(const Catalog& stored, const EntryArrays& wanted,
                                   const EntryMatchRules& rules);

}  // namespace shardwright::plan

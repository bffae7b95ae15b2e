// SPDX-License-Identifier: Apache-2.0
//
// From what ranks send to what all of them describe. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/plan/rank_descriptions.h"

namespace shardwright::plan {

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

}  // namespace shardwright::plan

// SPDX-License-Identifier: Apache-2.0
//
// Keys of rank_local entries: torch has one entry per key, so each rank's has a key of its own,
// NAME.rank-R. What tells them from keys that only look so stands in planner_data, which torch
// looks up by keys of the state and takes no notice of otherwise:
//
//   "shardwright.rank_local": {"rule": "{name}.rank-{rank}", "names": [NAME, ...]}
//   "shardwright.metadata": {KEY: TEXT, ...}    what the caller added to the checkpoint
//
// Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardwright::format::torch_dcp {

inline constexpr std::string_view kRankLocalKey = "shardwright.rank_local";
inline constexpr std::string_view kRankLocalRule = "{name}.rank-{rank}";
inline constexpr std::string_view kMetadataKey = "shardwright.metadata";

std::string rank_local_key(std::string_view name, int32_t rank);

struct RankLocalName {
  std::string_view name;
  int32_t rank = -1;
};
// What the rule makes of a key; nullopt for keys that it gives to nobody.
std::optional<RankLocalName> split_rank_local_key(std::string_view key);

}  // namespace shardwright::format::torch_dcp

// SPDX-License-Identifier: Apache-2.0
//
// The plans of an exchange, in which ranks of a load read stored blocks for each other: what one
// rank wants (WantList) and how that comes to it and goes on from it (ExchangePlan). Nodes are
// ranks that share memory, named by their lowest rank; a rank by itself is a node. Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardwright::plan {

// A block of the payload of a checkpoint: bytes that are read and checked as one. Positions count
// the bytes of all its files, one file behind the other.
struct StoredBlock {
  uint64_t position = 0;
  uint64_t length = 0;
  friend auto operator<=>(const StoredBlock&, const StoredBlock&) = default;
};

struct WantList {
  int32_t rank = 0;
  int32_t world_size = 1;
  int32_t node = 0;
  std::string generation;    // empty when the format has none
  uint64_t round_bytes = 0;  // about so much may come to this rank at a time; 0 = nobody asks
  std::vector<StoredBlock> blocks;  // ascending, none twice
};

inline constexpr uint32_t kMostTargets = 4;
inline constexpr uint32_t kMostSteps = 32;  // of a route; far above those of kMaxWorldSize ranks

// Of one block for one rank that wants it.
struct Route {
  int32_t taker = kNobody;   // of this node; nobody: no other node wants the block
  int32_t source = kStored;  // who sends it to the taker; kStored: the taker reads it
  uint32_t step = 0;         // how many ranks have it before the taker
  uint32_t targets = 0;      // whom the taker sends it to: so many numbers of ExchangePlan::targets

  static constexpr int32_t kNobody = -1;
  static constexpr int32_t kStored = -1;
  bool is_exchanged() const { return taker != kNobody; }
  friend bool operator==(const Route&, const Route&) = default;
};

struct ExchangePlan {
  int32_t rank = 0;
  int32_t world_size = 1;
  std::string generation;
  uint64_t span_bytes = 0;    // of a round (load/exchange_rounds.h); 0 = rounds are not planned yet
  std::vector<Route> routes;  // one for each block of the WantList
  std::vector<int32_t> targets;  // of all routes; told to the taker only
  std::vector<uint64_t> rounds;  // those in which some rank has something to do, ascending
};

}  // namespace shardwright::plan

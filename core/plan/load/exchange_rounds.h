// SPDX-License-Identifier: Apache-2.0
//
// Rounds of an exchange: in which of them a block is read or received, and in which it is sent on.
// The payload is cut into spans; a block that begins in span s is read for round s and is sent in
// round s + 1, and so on along its route. So every rank knows the round of every block that it
// wants, and a round moves at most about a span of bytes to each rank. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/exchange_plan.h"

namespace shardwright::plan {

// What a rank can spare for a round is within these.
inline constexpr uint64_t kLeastSpanBytes = uint64_t{1} << 20;
inline constexpr uint64_t kMostSpanBytes = uint64_t{32} << 20;

// A block, by its number in the list of what this rank wants, on its way from or to a rank.
struct Transfer {
  int32_t rank = 0;
  uint32_t block = 0;
  friend auto operator<=>(const Transfer&, const Transfer&) = default;
};

// What this rank does in one round: first what it has goes out and the others' comes in, then that
// is handed on with what was read for the round. Transfers ascend by rank and block, as both ends
// have them.
struct ExchangeRound {
  int64_t number = 0;
  std::vector<uint32_t> reads;
  std::vector<Transfer> departures;
  std::vector<Transfer> arrivals;
};

struct ExchangeRounds {
  uint64_t span_bytes = 0;
  // Of each block that this rank wants: the round in which its node has it; kNoRound: nobody else
  // wants it.
  static constexpr int64_t kNoRound = -1;
  std::vector<int64_t> round_of;
  std::vector<ExchangeRound> rounds;  // ascending; those in which this rank takes blocks
};

// blocks: of this rank, one for each route of its plan.
ExchangeRounds make_rounds(std::span<const StoredBlock> blocks, const ExchangePlan& plan,
                           uint64_t span_bytes);

// Bytes that are read, sent or received in a round, whichever are most.
uint64_t largest_part(const ExchangeRound& round, std::span<const StoredBlock> blocks);

}  // namespace shardwright::plan

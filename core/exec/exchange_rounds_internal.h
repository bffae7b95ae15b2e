// SPDX-License-Identifier: Apache-2.0
//
// Rounds of an exchange: in which of them a block is read or received, and in which it is sent on.
// The files of a checkpoint, laid end to end, are cut into spans; a block that begins in span s is
// read for round s and is sent in round s + 1, and so on along its route. So every rank knows the
// round of every block that it wants, and a round moves about a span of bytes to each rank. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/exec/exchange_routes_internal.h"
#include "core/format/format.h"

namespace shardwright::exec::internal {

// A block, by its number in the list of what this rank wants, on its way from or to a rank.
struct Transfer {
  int32_t rank = 0;
  uint32_t block = 0;
  bool operator==(const Transfer&) const = default;
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

// blocks and list.routes: one for one. rank: this one.
ExchangeRounds make_rounds(std::span<const WantedBlock> blocks, const RouteList& list, int32_t rank,
                           std::span<const format::FileInfo> files, uint64_t span_bytes);

// What the buffers of a round need at most.
struct RoundBytes {
  uint64_t read = 0;  // as reads are laid out
  uint64_t sent = 0;
  uint64_t received = 0;
};
RoundBytes most_bytes(const ExchangeRounds& rounds, std::span<const WantedBlock> blocks);

// Where the blocks of a round lie in the memory that they are read into: as in the file where they
// lie side by side there, so that a direct read lands in place.
class ReadLayout {
 public:
  uint64_t add(const WantedBlock& block);  // ascending; the place of its first byte
  uint64_t size_bytes() const;

 private:
  WantedBlock last_;
  uint64_t last_begin_ = 0;
  bool is_empty_ = true;
};

}  // namespace shardwright::exec::internal

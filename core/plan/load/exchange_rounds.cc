// SPDX-License-Identifier: Apache-2.0
#include "core/plan/load/exchange_rounds.h"

#include <algorithm>
#include <map>

namespace shardwright::plan {

ExchangeRounds make_rounds(std::span<const StoredBlock> blocks, const ExchangePlan& plan,
                           uint64_t span_bytes) {
  ExchangeRounds made;
  made.span_bytes = span_bytes;
  made.round_of.reserve(blocks.size());
  std::map<int64_t, ExchangeRound> rounds;
  const int32_t* target = plan.targets.data();
  for (uint32_t number = 0; number < blocks.size(); ++number) {
    const Route& route = plan.routes[number];
    const int32_t* const end = target + route.targets;
    if (!route.is_exchanged()) {
      made.round_of.push_back(ExchangeRounds::kNoRound);
      continue;
    }
    const auto round = static_cast<int64_t>(blocks[number].position / span_bytes) + route.step;
    made.round_of.push_back(round);
    if (route.taker == plan.rank) {
      if (route.source == Route::kStored) {
        rounds[round].reads.push_back(number);
      } else {
        rounds[round].arrivals.push_back({route.source, number});
      }
      for (; target != end; ++target) rounds[round + 1].departures.push_back({*target, number});
    }
    target = end;
  }
  made.rounds.reserve(rounds.size());
  for (auto& [round, each] : rounds) {
    each.number = round;
    std::ranges::sort(each.departures);
    std::ranges::sort(each.arrivals);
    made.rounds.push_back(std::move(each));
  }
  return made;
}

uint64_t largest_part(const ExchangeRound& round, std::span<const StoredBlock> blocks) {
  uint64_t read = 0;
  uint64_t sent = 0;
  uint64_t received = 0;
  for (const uint32_t block : round.reads) read += blocks[block].length;
  for (const Transfer& each : round.departures) sent += blocks[each.block].length;
  for (const Transfer& each : round.arrivals) received += blocks[each.block].length;
  return std::max({read, sent, received});
}

}  // namespace shardwright::plan

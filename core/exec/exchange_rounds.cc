// SPDX-License-Identifier: Apache-2.0
#include "core/exec/exchange_rounds_internal.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/limits.h"

namespace shardwright::exec::internal {
namespace {

std::vector<uint64_t> file_begins(std::span<const format::FileInfo> files) {
  std::vector<uint64_t> begins;
  begins.reserve(files.size());
  uint64_t begin = 0;
  for (const format::FileInfo& file : files) {
    begins.push_back(begin);
    begin += file.size_bytes;
  }
  return begins;
}

void sort_transfers(std::vector<Transfer>* transfers) {
  std::ranges::sort(*transfers, {},
                    [](const Transfer& each) { return std::tuple(each.rank, each.block); });
}

uint64_t bytes_of(std::span<const Transfer> transfers, std::span<const WantedBlock> blocks) {
  uint64_t bytes = 0;
  for (const Transfer& each : transfers) bytes += blocks[each.block].length;
  return bytes;
}

}  // namespace

ExchangeRounds make_rounds(std::span<const WantedBlock> blocks, const RouteList& list, int32_t rank,
                           std::span<const format::FileInfo> files, uint64_t span_bytes) {
  const std::vector<uint64_t> begins = file_begins(files);
  ExchangeRounds made;
  made.span_bytes = span_bytes;
  made.round_of.reserve(blocks.size());
  std::map<int64_t, ExchangeRound> rounds;
  const int32_t* target = list.targets.data();
  for (uint32_t number = 0; number < blocks.size(); ++number) {
    const Route& route = list.routes[number];
    if (!route.is_exchanged()) {
      made.round_of.push_back(ExchangeRounds::kNoRound);
      continue;
    }
    const uint64_t position = begins[blocks[number].file] + blocks[number].offset;
    const auto round = static_cast<int64_t>(position / span_bytes) + route.step;
    made.round_of.push_back(round);
    if (route.taker != rank) {
      target += route.targets;
      continue;
    }
    if (route.source == Route::kStored) {
      rounds[round].reads.push_back(number);
    } else {
      rounds[round].arrivals.push_back({route.source, number});
    }
    for (uint32_t t = 0; t < route.targets; ++t)
      rounds[round + 1].departures.push_back({*target++, number});
  }
  made.rounds.reserve(rounds.size());
  for (auto& [round, each] : rounds) {
    each.number = round;
    sort_transfers(&each.departures);
    sort_transfers(&each.arrivals);
    made.rounds.push_back(std::move(each));
  }
  return made;
}

RoundBytes most_bytes(const ExchangeRounds& rounds, std::span<const WantedBlock> blocks) {
  RoundBytes most;
  for (const ExchangeRound& round : rounds.rounds) {
    ReadLayout layout;
    for (const uint32_t number : round.reads) layout.add(blocks[number]);
    most.read = std::max(most.read, layout.size_bytes());
    most.sent = std::max(most.sent, bytes_of(round.departures, blocks));
    most.received = std::max(most.received, bytes_of(round.arrivals, blocks));
  }
  return most;
}

uint64_t ReadLayout::add(const WantedBlock& block) {
  constexpr uint64_t kUnit = kExtentAlignmentBytes;
  const uint64_t last_end = last_.offset + last_.length;
  if (is_empty_) {
    last_begin_ = block.offset % kUnit;
  } else if (block.file == last_.file && block.offset >= last_end &&
             block.offset - last_end < kUnit) {
    last_begin_ += block.offset - last_.offset;
  } else {
    last_begin_ = (size_bytes() + kUnit - 1) / kUnit * kUnit + block.offset % kUnit;
  }
  last_ = block;
  is_empty_ = false;
  return last_begin_;
}

uint64_t ReadLayout::size_bytes() const {
  return is_empty_ ? 0 : last_begin_ + last_.length;
}

}  // namespace shardwright::exec::internal

// SPDX-License-Identifier: Apache-2.0
//
// LoadExchange: what the ranks of a load do so that nodes send each other blocks that several of
// them want. In steps of all ranks:
//   1  is there more than one node?
//   2  each rank tells the homes of its blocks what it wants; these answer with routes;
//   3  all choose one span for the rounds, so that a round fits the memory of each;
//   4  where it is left to the library: each reads for its first round and sends some bytes; the
//      exchange is on where it would end before the reads that it saves;
//   5  the rounds, each an agreement and one movement of bytes.
// A rank that cannot take part leaves the exchange to nobody: all read by themselves. A rank that
// fails in a round ends the load of all with its cause.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/collective/exchange.h"
#include "core/exec/block_exchange_internal.h"
#include "core/exec/node_meeting_internal.h"
#include "core/exec/options.h"
#include "core/plan/load/exchange_routes.h"

namespace shardwright::exec::internal {

// Where the exchange is left to the library, a rank has at least so much to read without it.
inline constexpr uint64_t kLeastExchangedBytes = uint64_t{64} << 20;

// What the slowest rank has seen and would have to do.
struct ExchangeCosts {
  uint64_t read_alone_bytes = 0;  // without an exchange
  uint64_t read_bytes = 0;        // with it, and what comes from others then
  uint64_t received_bytes = 0;
  int64_t read_ns_per_mib = 0;
  int64_t send_ns_per_mib = 0;
};
// A round moves at most so many bytes, out of a memory budget, to or from a rank.
uint64_t round_bytes(uint64_t budget_bytes);
// Where blocks lie when the files are laid one behind the other.
std::vector<plan::StoredBlock> place_blocks(std::span<const WantedBlock> blocks,
                                            std::span<const format::FileInfo> files);
// Those blocks of a list that share no bytes with another one: the others, of formats in which
// tensors share bytes, each rank reads by itself. Then their routes, in their places among those of
// the whole list.
std::vector<plan::StoredBlock> exchangeable(std::span<const plan::StoredBlock> blocks);
void spread_routes(std::span<const plan::StoredBlock> blocks, plan::ExchangePlan* plan);
// Whether the exchange would end before a tenth less than what reading alone takes. Pure.
bool exchange_pays(const ExchangeCosts& costs);

class LoadExchange {
 public:
  // Everything outlives it; wanted: nothing = this rank takes no part, but in the steps.
  LoadExchange(const ReadSetting& setting, const BlockExchange::Wanted& wanted, ExchangeRule rule,
               const Clock& clock)
      : setting_(setting), wanted_(wanted), rule_(rule), clock_(clock) {}

  // Steps 1 to 4. ready: how this rank is so far; the failure of any rank is returned. Tells the
  // meeting, which has met, in which rounds blocks come.
  Status plan(collective::Exchange& exchange, const Status& ready, NodeMeeting& meeting) noexcept;
  bool is_on() const { return blocks_.has_value(); }
  // All needs but those that come by step 5; group as in BlockExchange.
  void join(NodeGroup* group, std::vector<BlockNeed>* rest) { blocks_->join(group, rest); }
  // Step 5, where is_on. mine: how this rank is when it has read the rest.
  Status run(collective::Exchange& exchange, Status mine) noexcept;
  // Also of an exchange that is off: it may have read to find that out.
  const BlockReadTotals& totals() const { return blocks_ ? blocks_->totals() : tried_; }

 private:
  Status find_routes(collective::Exchange& exchange, int32_t node);
  uint64_t longest_span() const;
  Result<bool> choose_span(collective::Exchange& exchange);
  Result<bool> reserve(collective::Exchange& exchange);
  Result<bool> decide(collective::Exchange& exchange);
  Result<int64_t> time_reads(collective::Exchange& exchange);
  Result<int64_t> time_sends(collective::Exchange& exchange);
  Status tell_rounds(collective::Exchange& exchange, NodeMeeting& meeting);
  Status plan_together(collective::Exchange& exchange, const Status& ready, NodeMeeting& meeting);

  const ReadSetting setting_;
  const BlockExchange::Wanted wanted_;
  const ExchangeRule rule_;
  const Clock& clock_;
  std::vector<plan::StoredBlock> placed_;  // the blocks of wanted_
  plan::ExchangePlan plan_;
  std::optional<BlockExchange> blocks_;
  BlockReadTotals tried_;
};

}  // namespace shardwright::exec::internal

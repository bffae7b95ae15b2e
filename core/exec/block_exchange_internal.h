// SPDX-License-Identifier: Apache-2.0
//
// BlockExchange: this rank's part in the rounds of an exchange (plan/load/exchange_rounds.h),
// whoever moves the bytes between ranks. Of each round, in steps:
//   1  begin: what was read for the round is there, and the next reads go out; what others are to
//      get in it lies in outgoing;
//   2  the host, or the collective, moves outgoing to the others and theirs to incoming;
//   3  finish: what came is checked, what was read was checked then; both go to where they are
//      wanted, and to the ranks of this machine.
// Memory is reserved before the first round: for what is read ahead, what is sent and what came in
// this round and the one before. One thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/concurrency/thread_pool.h"
#include "core/exec/block_io_internal.h"
#include "core/exec/node_group_internal.h"
#include "core/plan/load/exchange_rounds.h"

namespace shardwright::exec::internal {

// What the buffers of a round need at most.
struct RoundBytes {
  uint64_t read = 0;  // with what reads are rounded by
  uint64_t sent = 0;
  uint64_t received = 0;

  uint64_t largest() const { return std::max({read, sent, received}); }
};

class BlockExchange {
 public:
  static constexpr int64_t kNoRound = INT64_MAX;

  // What this rank wants, as wanted_blocks gives it: needs ascend, begins[b] is the first need of
  // block b, and one more at the end. All outlive the exchange.
  struct Wanted {
    std::span<const BlockNeed> needs;
    std::span<const WantedBlock> blocks;
    std::span<const size_t> begins;

    std::span<const BlockNeed> needs_of(size_t block) const {
      return needs.subspan(begins[block], begins[block + 1] - begins[block]);
    }
  };
  BlockExchange(const ReadSetting& setting, const Wanted& wanted, plan::ExchangeRounds rounds,
                int32_t world_size);
  ~BlockExchange();  // waits for reads
  BlockExchange(const BlockExchange&) = delete;
  BlockExchange& operator=(const BlockExchange&) = delete;

  const plan::ExchangeRounds& rounds() const { return rounds_; }
  const RoundBytes& most() const { return most_; }
  // RESOURCE_EXHAUSTED when there is no memory that nobody has to be waited for: for the rounds,
  // and beside it for one read of what is not exchanged, which end_reserving gives back when all
  // ranks have reserved theirs. So whoever waits for such memory later gets it.
  Status reserve();
  void end_reserving() { spare_ = StagingBuffer(); }
  // Reads for the first round that needs some, and waits. *bytes: how many; none are no failure.
  Status read_first(uint64_t* bytes);

  // Before the first round. group: through which ranks of this machine get what one of them has
  // taken, null = none. Outlives the rounds. *rest: the needs that do not come by this exchange.
  void join(NodeGroup* group, std::vector<BlockNeed>* rest);

  // The first round in which this rank has something to do, kNoRound when it has nothing any more.
  int64_t next_round() const;
  // Rounds ascend; those of others, in which this rank does nothing, may be among them.
  Status begin(int64_t round);
  std::span<const std::byte> outgoing() const { return outgoing_; }
  std::span<const uint64_t> outgoing_sizes() const { return outgoing_sizes_; }
  std::span<std::byte> incoming() const { return incoming_; }
  std::span<const uint64_t> incoming_sizes() const { return incoming_sizes_; }
  Status finish(int64_t round);
  // The ranks of this machine stop, too: this one has failed.
  void stop();

  const BlockReadTotals& totals() const { return totals_; }

 private:
  // The reads of one round, and where each lies in the memory for them.
  struct RoundReads {
    std::vector<BlockNeed> needs;
    std::vector<ReadTask> tasks;
    std::vector<uint64_t> places;
    uint64_t bytes = 0;
  };
  // A task of the group that this rank takes part in: blocks among [first, last) of what it wants.
  struct GroupTask {
    uint32_t number = 0;
    int64_t round = 0;
    bool is_taken_here = false;
    size_t first = 0;
    size_t last = 0;
  };
  bool takes_part(int64_t round) const;
  ReadTask task_of(size_t block) const;
  void read_ahead();
  RoundReads reads_of(const plan::ExchangeRound& round) const;
  RoundBytes most_bytes() const;
  Status read(size_t number, std::span<std::byte> memory);
  Status hand_on(const plan::ExchangeRound& round);
  Status pass_on(int64_t round);
  Status give(const GroupTask& task);
  Status take(const GroupTask& task);
  template <typename Ready>
  Status wait(const GroupTask& task, const Ready& ready);
  void add_group_tasks(std::vector<bool>* comes);
  Status reserve_all();
  // Blocks that overlap others lie inside of tasks that they are no part of.
  bool belongs_to(size_t block, const GroupTask& task) const {
    return rounds_.round_of[block] == task.round;
  }

  const ReadSetting setting_;
  const Wanted wanted_;
  const plan::ExchangeRounds rounds_;
  const size_t world_size_;
  BlockIo io_;
  const RoundBytes most_;
  NodeGroup* group_ = nullptr;
  std::vector<GroupTask> group_tasks_;
  size_t next_round_ = 0;  // of rounds_
  size_t next_task_ = 0;   // of group_tasks_
  size_t next_read_ = 0;   // the first round of rounds_ that is not looked at for reads
  size_t reads_ = 0;       // rounds that were begun to be read
  bool has_begun_ = false;
  std::vector<const std::byte*> places_;  // of the blocks that are here
  std::array<StagingBuffer, 3> read_;
  std::array<StagingBuffer, 2> arrived_;
  StagingBuffer sent_;
  StagingBuffer spare_;
  std::span<std::byte> outgoing_;
  std::span<std::byte> incoming_;
  std::vector<uint64_t> outgoing_sizes_;
  std::vector<uint64_t> incoming_sizes_;
  BlockReadTotals totals_;
  TaskGroup ahead_;  // last: its task uses the others
};

}  // namespace shardwright::exec::internal

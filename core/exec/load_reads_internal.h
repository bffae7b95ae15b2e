// SPDX-License-Identifier: Apache-2.0
//
// LoadReads: step 4 of a load with a plan that fits: what has to be read, with whom that is shared,
// and the reading. One thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/collective/exchange.h"
#include "core/exec/checksum_sink_internal.h"
#include "core/exec/fragment_reader_internal.h"
#include "core/exec/load_exchange_internal.h"
#include "core/exec/node_meeting_internal.h"
#include "core/exec/report.h"
#include "core/exec/save.h"
#include "core/exec/shared_reads_internal.h"
#include "core/exec/trace.h"

namespace shardwright::exec::internal {

// What a load reads from and how; everything outlives the call.
struct LoadInput {
  Runtime& runtime;
  const Checkpoint& checkpoint;
  const LoadOptions& options;
  Trace* trace;
};

// FAILED_PRECONDITION for a plan of another generation than that of the checkpoint.
Status check_generation(const plan::LoadPlan& plan, const format::OpenedCheckpoint& opened);
// The clock of a call, and how long one of its steps between ranks may take, negative = no limit.
const Clock& clock_of(const CallContext& call);
int64_t collective_timeout(const LoadOptions& options);
// The load stands whether or not its trace can be written.
void write_trace(Runtime& runtime, const Trace& trace) noexcept;

// Step 4 for byte objects: bytes are read into private memory and handed to the state when all of
// them are whole.
struct ObjectBytes {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<ObjectTarget> targets;

  ObjectBytes(const plan::Catalog& stored, const plan::LoadPlan& plan);
  void store(const plan::Catalog& stored, const plan::LoadPlan& plan, State* state);
};

class LoadReads {
 public:
  // call: with the deadline of the options in it. shares: with other ranks, by share. The caller
  // adds the plan's lists of names to the report.
  LoadReads(const LoadInput& input, const plan::LoadPlan& plan, State& state,
            const CallContext& call, bool shares);

  // What has to be read; nothing is.
  Status prepare();
  // Steps of all ranks: finds those to share reads with. ready: how this rank is so far.
  Status share(collective::Exchange& exchange, const Status& ready) noexcept;
  // Instead of share, where a host moves the blocks: what this rank wants; then how that comes to
  // it, as planned for this rank, and the rounds, before run.
  Result<plan::WantList> want_list(int32_t world_size) const;
  Status use(plan::ExchangePlan plan);
  BlockExchange& planned() { return *planned_; }
  // exchange: that of share, null where nothing is shared. *ended: whether all ranks know how it
  // has ended.
  Result<Report> run(collective::Exchange* exchange, bool* ended) noexcept;

 private:
  bool is_exchanged() const { return exchanged_.has_value() && exchanged_->is_on(); }
  ReadSetting setting();
  BlockSink& sink() { return summing_.has_value() ? static_cast<BlockSink&>(*summing_) : *copies_; }
  BlockExchange::Wanted wanted() const;
  bool is_at_hand();
  Status leave_what_is_at_hand();
  Status want_parts();
  Status read_rest();
  Status find_partners(collective::Exchange& exchange, const Status& ready, NodeMeeting& meeting);
  Result<Report> finish(int64_t begin_ns);

  const LoadInput input_;
  const plan::LoadPlan& plan_;
  State& state_;
  const CallContext call_;
  const plan::Catalog& stored_;
  ObjectBytes objects_;
  const PlanFragments fragments_;
  FragmentRequest request_;
  std::unique_ptr<BlockSink> copies_;
  std::optional<ItemChecksums> checksums_;  // where the checkpoint has them and they are looked at
  std::optional<ChecksumSink> summing_;     // in front of the copies then
  FragmentNeeds needs_;
  WantedList wanted_;
  Result<std::unique_ptr<NodeGroup>> group_ = std::unique_ptr<NodeGroup>();
  std::optional<LoadExchange> exchanged_;
  std::optional<BlockExchange> planned_;
  std::vector<BlockNeed> rest_;  // of needs_, where a part is exchanged
  BlockReadTotals totals_;
};

}  // namespace shardwright::exec::internal

// SPDX-License-Identifier: Apache-2.0
//
// Height 1 with an exchange: ranks read blocks for each other, and their host moves plans and
// blocks. In steps:
//   1  each rank: want_list of its load plan;
//   2  one rank, for all: plan::make_exchange_plans;
//   3  each rank: PlannedLoad::create with its exchange plan, then for each of rounds() in their
//      order begin_round, the movement of bytes between all ranks by the host, finish_round;
//   4  each rank: finish reads what nobody else wants.
// A rank that fails has to be told to the others by the host. One thread at a time.
#pragma once

#include <memory>
#include <span>

#include "core/exec/checkpoint.h"
#include "core/exec/report.h"
#include "core/exec/save.h"
#include "core/plan/exchange_plan.h"
#include "core/plan/load_plan.h"

namespace shardwright::exec {

// Everything outlives the call; the plan fits checkpoint and state (checked, as execute_load does).
struct PlannedInput {
  Runtime& runtime;
  const Checkpoint& checkpoint;
  const plan::LoadPlan& plan;
  State& state;
  const LoadOptions& options;
};

// INVALID_ARGUMENT when the rank of the plan is none of world_size.
Result<plan::WantList> want_list(const PlannedInput& input, int32_t world_size,
                                 const CallContext& call);

class PlannedLoad {
 public:
  // input and call outlive it. FAILED_PRECONDITION for an exchange plan of other blocks, another
  // rank or generation, RESOURCE_EXHAUSTED when the memory budget has no room for its rounds.
  static Result<std::unique_ptr<PlannedLoad>> create(const PlannedInput& input,
                                                     const plan::ExchangePlan& exchange,
                                                     const CallContext& call);
  virtual ~PlannedLoad() = default;

  // How many there are on all ranks, and how many this one has finished.
  virtual size_t rounds() const = 0;
  virtual size_t finished() const = 0;
  // What goes to the others in this round and what comes from them, back to back in rank order.
  // Memory stays until the round is finished.
  struct Round {
    std::span<const std::byte> outgoing;
    std::span<const uint64_t> outgoing_sizes;
    std::span<std::byte> incoming;
    std::span<const uint64_t> incoming_sizes;
  };
  // FAILED_PRECONDITION out of order, here and below; after another failure the load has failed.
  virtual Result<Round> begin_round() = 0;
  virtual Status finish_round() = 0;
  virtual Result<Report> finish() = 0;
};

}  // namespace shardwright::exec

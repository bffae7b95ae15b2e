// SPDX-License-Identifier: Apache-2.0
//
// The states of a unit and what each call does in each of them: one table, which Unit follows and
// tests read. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/result.h"

namespace shardwright::hsdp {

enum class UnitState : int32_t {
  kSharded = 0,
  kGathering = 1,
  kUnsharded = 2,
  kSecondary = 3,  // holds 1/n of the gathered parameters
};
std::string_view unit_state_name(UnitState state);

// Where the gradients of a unit are; several at once where micro-batches overlap: the furthest.
enum class GradientState : int32_t {
  kNone = 0,
  kLocal = 1,  // unsharded, of this rank
  kPacked = 2,
  kScattering = 3,
  kPartial = 4,  // summed over the shard axis, not yet over replicas
  kReplicating = 5,
  kReady = 6,  // in the gradient of the shard
};
std::string_view gradient_state_name(GradientState state);

enum class UnitCall : int32_t {
  kUnshard = 0,
  kWait = 1,
  kReshardForward = 2,
  kReshardBackward = 3,
  kAddGradients = 4,
  kReduce = 5,
};
std::string_view unit_call_name(UnitCall call);

enum class UnitStep : int32_t {
  kNothing = 0,
  kGather = 1,            // -> kGathering
  kGatherSecondary = 2,   // -> kGathering, over n ranks
  kFinish = 3,            // waits for the gather -> kUnsharded
  kFinishThenPolicy = 4,  // kFinish, then kPolicy
  kDiscard = 5,           // waits for the gather, drops it -> kSharded
  kPolicy = 6,            // -> kSharded, kSecondary, or stays
  kFree = 7,              // -> kSharded
  kAccept = 8,            // takes gradients
  kReduceHeld = 9,        // packs gradients that are held, if there are any
  kReduceThenFree = 10,   // packs, then kFree
};

// FAILED_PRECONDITION naming the state and the states in which the call is legal.
Result<UnitStep> unit_step(UnitState state, UnitCall call, std::string_view unit);

}  // namespace shardwright::hsdp

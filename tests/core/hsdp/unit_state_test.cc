// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/unit_state.h"

#include <gtest/gtest.h>

#include "tests/support/expect_failure.h"

namespace shardwright::test {
namespace {

using hsdp::UnitCall;
using hsdp::UnitState;
using hsdp::UnitStep;

struct Cell {
  UnitState state;
  UnitCall call;
  UnitStep step;
};

TEST(UnitState, EachLegalCellDoesWhatTheTableSays) {
  const std::vector<Cell> cells = {
      {UnitState::kSharded, UnitCall::kUnshard, UnitStep::kGather},
      {UnitState::kSharded, UnitCall::kWait, UnitStep::kNothing},
      {UnitState::kSharded, UnitCall::kReshardForward, UnitStep::kNothing},
      {UnitState::kSharded, UnitCall::kReshardBackward, UnitStep::kNothing},
      {UnitState::kSharded, UnitCall::kReduce, UnitStep::kReduceHeld},
      {UnitState::kGathering, UnitCall::kUnshard, UnitStep::kNothing},
      {UnitState::kGathering, UnitCall::kWait, UnitStep::kFinish},
      {UnitState::kGathering, UnitCall::kReshardForward, UnitStep::kFinishThenPolicy},
      {UnitState::kGathering, UnitCall::kReshardBackward, UnitStep::kDiscard},
      {UnitState::kUnsharded, UnitCall::kUnshard, UnitStep::kNothing},
      {UnitState::kUnsharded, UnitCall::kWait, UnitStep::kNothing},
      {UnitState::kUnsharded, UnitCall::kReshardForward, UnitStep::kPolicy},
      {UnitState::kUnsharded, UnitCall::kReshardBackward, UnitStep::kFree},
      {UnitState::kUnsharded, UnitCall::kAddGradients, UnitStep::kAccept},
      {UnitState::kUnsharded, UnitCall::kReduce, UnitStep::kReduceThenFree},
      {UnitState::kSecondary, UnitCall::kUnshard, UnitStep::kGatherSecondary},
      {UnitState::kSecondary, UnitCall::kWait, UnitStep::kNothing},
      {UnitState::kSecondary, UnitCall::kReshardForward, UnitStep::kNothing},
      {UnitState::kSecondary, UnitCall::kReshardBackward, UnitStep::kFree},
  };
  for (const Cell& each : cells) {
    const Result<UnitStep> step = unit_step(each.state, each.call, "u");
    ASSERT_TRUE(step.ok()) << step.status().to_string();
    EXPECT_EQ(*step, each.step) << unit_state_name(each.state) << ", " << unit_call_name(each.call);
  }
}

TEST(UnitState, AnIllegalCallNamesTheStateAndTheLegalOnes) {
  for (const UnitState state :
       {UnitState::kSharded, UnitState::kGathering, UnitState::kSecondary}) {
    EXPECT_FAILURE(unit_step(state, UnitCall::kAddGradients, "layer").status(),
                   StatusCode::kFailedPrecondition, "'layer'", "add gradients",
                   unit_state_name(state), "must be UNSHARDED");
  }
  for (const UnitState state : {UnitState::kGathering, UnitState::kSecondary}) {
    const Status failure = unit_step(state, UnitCall::kReduce, "layer").status();
    EXPECT_FAILURE(failure, StatusCode::kFailedPrecondition, "'layer'", "reduce",
                   unit_state_name(state), "SHARDED or UNSHARDED");
    EXPECT_EQ(failure.detail("found"), unit_state_name(state));
  }
}

}  // namespace
}  // namespace shardwright::test

// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/unit_state.h"

#include <array>
#include <string>

#include <fmt/format.h>

namespace shardwright::hsdp {
namespace {

constexpr size_t kStates = 4;
constexpr size_t kCalls = 6;
constexpr UnitStep kIllegal = static_cast<UnitStep>(-1);

// Rows: kSharded, kGathering, kUnsharded, kSecondary; columns in the order of UnitCall.
constexpr std::array<std::array<UnitStep, kCalls>, kStates> kTable = {{
    {UnitStep::kGather, UnitStep::kNothing, UnitStep::kNothing, UnitStep::kNothing, kIllegal,
     UnitStep::kReduceHeld},
    {UnitStep::kNothing, UnitStep::kFinish, UnitStep::kFinishThenPolicy, UnitStep::kDiscard,
     kIllegal, kIllegal},
    {UnitStep::kNothing, UnitStep::kNothing, UnitStep::kPolicy, UnitStep::kFree, UnitStep::kAccept,
     UnitStep::kReduceThenFree},
    {UnitStep::kGatherSecondary, UnitStep::kNothing, UnitStep::kNothing, UnitStep::kFree, kIllegal,
     kIllegal},
}};

std::string legal_states(UnitCall call) {
  std::string text;
  for (size_t state = 0; state < kStates; ++state) {
    if (kTable[state][static_cast<size_t>(call)] == kIllegal) continue;
    if (!text.empty()) text += " or ";
    text += unit_state_name(static_cast<UnitState>(state));
  }
  return text;
}

}  // namespace

std::string_view unit_state_name(UnitState state) {
  constexpr std::array<std::string_view, kStates> kNames = {"SHARDED", "GATHERING", "UNSHARDED",
                                                            "SECONDARY"};
  return kNames[static_cast<size_t>(state)];
}

std::string_view gradient_state_name(GradientState state) {
  constexpr std::array<std::string_view, 7> kNames = {
      "NONE", "LOCAL", "PACKED", "SCATTERING", "PARTIAL", "REPLICATING", "READY"};
  return kNames[static_cast<size_t>(state)];
}

std::string_view unit_call_name(UnitCall call) {
  constexpr std::array<std::string_view, kCalls> kNames = {
      "unshard",       "wait",  "reshard after forward", "reshard after backward",
      "add gradients", "reduce"};
  return kNames[static_cast<size_t>(call)];
}

Result<UnitStep> unit_step(UnitState state, UnitCall call, std::string_view unit) {
  const UnitStep step = kTable[static_cast<size_t>(state)][static_cast<size_t>(call)];
  if (step != kIllegal) return step;
  return failed_precondition(fmt::format("unit '{}' cannot {} while it is {}; it must be {}", unit,
                                         unit_call_name(call), unit_state_name(state),
                                         legal_states(call)))
      .with_detail("found", unit_state_name(state))
      .with_detail("expected", legal_states(call));
}

}  // namespace shardwright::hsdp

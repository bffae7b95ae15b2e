// SPDX-License-Identifier: Apache-2.0
//
// States of the shapes of their parameters, made of what lies in buckets. Nothing is copied.
#pragma once

#include <string>
#include <vector>

#include "core/exec/checkpoint.h"
#include "core/exec/checkpoint_view.h"
#include "core/reshard/assign_buckets.h"

namespace shardwright::reshard {

struct StatesInput {
  const exec::Checkpoint& source;
  const std::vector<Bucket>& buckets;
  const std::vector<LocalParameter>& parameters;
  const std::vector<Assigned>& assigned;
};

struct ParameterStates {
  std::vector<exec::ViewTensor> tensors;  // "optimizer.state.exp_avg.NAME"
  std::vector<std::string> notes;
};

// FAILED_PRECONDITION naming a parameter of which no bucket holds a part.
Result<ParameterStates> parameter_states(const StatesInput& input, Contents* contents);

}  // namespace shardwright::reshard

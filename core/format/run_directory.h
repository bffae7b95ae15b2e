// SPDX-License-Identifier: Apache-2.0
//
// Directories of runs: a checkpoint per step (RUN/step-00000100/, and Megatron's RUN/iter_0000100/
// with the tracker beside them). Thread rule of the storage.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/result.h"
#include "core/format/opened_checkpoint.h"

namespace shardwright::format {

inline constexpr std::string_view kTrackerName = "latest_checkpointed_iteration.txt";

using RunSteps = std::set<std::pair<int64_t, std::string>>;  // step-1 and step-00000001 differ
Result<RunSteps> find_run_steps(const Location& location);

// The text of the tracker, without blanks around it; "" without one. Of one that is longer than any
// the beginning.
Result<std::string> tracker_text(const Location& location);
// The step that a tracker names; "" where the run has none.
std::string tracked_step(const RunSteps& steps, std::string_view tracker);

// Why the directory of a run is no checkpoint, and which of its steps are: INVALID_ARGUMENT. OK
// where it holds neither steps nor a tracker.
Status explain_run(const Location& location);

}  // namespace shardwright::format

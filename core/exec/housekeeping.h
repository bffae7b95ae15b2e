// SPDX-License-Identifier: Apache-2.0
//
// What keeps a directory of checkpoints tidy: gc removes generations that no manifest names, and
// steps lists the checkpoints of a run (RUN/step-00000100/, and Megatron's RUN/iter_0000100/).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/exec/report.h"
#include "core/exec/runtime.h"
#include "core/format/format.h"

namespace shardwright::exec {

struct GcOptions {
  bool apply = false;    // false: a dry run that lists what would go
  int64_t grace_ns = 0;  // 0 = kGcGraceNs, negative = none: younger generations stay
};
// report.removed lists generations with bytes; a generation that is named or young stays. With
// apply, nothing is removed while a save runs at the path, and a note says so. NOT_FOUND: nothing
// is there. FAILED_PRECONDITION: generations without a manifest; or apply with a grace below
// kGcGraceNs where the storage has no locks. DATA_LOSS: the manifest is damaged.
Result<Report> collect_garbage(Runtime& runtime, const format::Location& location,
                               const GcOptions& options);

struct StepInfo {
  std::string name;  // "step-00000100"
  int64_t step = 0;
  std::string state;    // "whole", "damaged", "uncommitted"
  std::string message;  // why not whole
};
struct RunInfo {
  std::vector<StepInfo> steps;  // ascending
  std::string newest_whole;     // "" when there is none
  // What Megatron's latest_checkpointed_iteration.txt says, "" without one: its text, and the step
  // of that number, "" where there is none.
  std::string tracker;
  std::string tracked;
};
// NOT_FOUND when the prefix holds neither step directories nor a tracker.
Result<RunInfo> list_run(Runtime& runtime, const format::Location& location);

// Name of the newest whole step; looks at the newest first and no further than it has to. Steps
// that are damaged, uncommitted or no checkpoint are passed over with a warning in the log.
// NOT_FOUND: there is no step, or none is whole. What keeps a step from being looked at
// (UNAVAILABLE, PERMISSION_DENIED, a newer format) is returned: no older step stands in for it.
Result<std::string> newest_whole_step(Runtime& runtime, const format::Location& location);

}  // namespace shardwright::exec

// SPDX-License-Identifier: Apache-2.0
//
// What is no tensor of a checkpoint of Megatron, as a job of another shape says it: groups of
// parameters, the kind of the optimizer's layout, sizes of the parallel groups in the arguments.
// What belongs to ranks of the old shape (random states, the rerun machine) is left out.
#pragma once

#include <string>
#include <vector>

#include "core/exec/checkpoint.h"
#include "core/exec/checkpoint_view.h"
#include "core/reshard/target_job.h"

namespace shardwright::reshard {

struct JobStateChange {
  JobShape from;
  TargetJob to;
  bool has_experts = false;  // experts have an optimizer of their own where they are shared out
  bool has_buckets = false;  // what the source says in objects of its buckets goes into the state
};

struct JobState {
  std::vector<exec::ViewObject> objects;
  std::vector<std::string> notes;  // what was left out or could not be said, one sentence each
};

// All objects of the source, changed. FAILED_PRECONDITION naming what the source says in a way that
// is not known; failures of reads.
Result<JobState> change_job_state(const exec::Checkpoint& source, const JobStateChange& change);

}  // namespace shardwright::reshard

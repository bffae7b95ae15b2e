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
#include "core/reshard/value_tree.h"

namespace shardwright::reshard {

// What becomes of what the source says in objects of its buckets.
enum class BucketObjects : int32_t {
  kNone = 0,      // there are none, and none are made
  kIntoState,     // it goes into the common state
  kKept,          // they stay
  kOfNewBuckets,  // it goes into objects of the target's buckets
};

struct JobStateChange {
  JobShape from;
  TargetJob to;
  bool has_experts = false;  // experts have an optimizer of their own where they are shared out
  BucketObjects buckets = BucketObjects::kNone;
  int64_t vocabulary = 0;  // elements of it with their pad, 0 = as before
};

// Of the optimizers of a job: "chained_0." and "chained_1.", or "" for a single one.
bool is_chained(const JobShape& shape, bool has_experts);

struct JobState {
  std::vector<exec::ViewObject> objects;
  std::vector<std::string> notes;  // what was left out or could not be said, one sentence each
};

// What the source says in common.pt, or in an object among the data; a leaf without anything where
// it says nothing.
Result<Value> read_common_state(const exec::Checkpoint& source);

struct StoredLeaf {
  std::string bytes;
  std::string type;  // content type
};
// The bytes of a leaf that is no JSON.
Result<StoredLeaf> read_leaf(const exec::Checkpoint& source, const Value& leaf);

// All objects of the source, changed; sizes of buckets are left out. FAILED_PRECONDITION naming
// what the source says in a way that is not known; failures of reads.
Result<JobState> change_job_state(const exec::Checkpoint& source, const JobStateChange& change);

}  // namespace shardwright::reshard

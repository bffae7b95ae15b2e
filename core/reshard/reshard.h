// SPDX-License-Identifier: Apache-2.0
//
// Reshard: a checkpoint of Megatron as a job with other tensor-, pipeline-, expert- and
// data-parallel sizes would have saved it, optimizer included, without Python and in bounded
// memory. The source is only read. What was written stays when it fails or is killed, and the same
// call goes on with it; what was written is compared with what was read.
#pragma once

#include "core/exec/convert.h"
#include "core/reshard/reshard_map.h"
#include "core/reshard/target_job.h"

namespace shardwright::reshard {

// Sizes that are 0 are those of the source; that of tensor-parallel ranks of experts is the size of
// the rest where that was so in the source or no expert-parallel ranks are to be. Without layers of
// stages they are the source's where it has as many stages.
struct ReshardOptions {
  TargetJob target = {{0, 0, 0, 0, 0}, OptimizerLayout::kFullyReshardable};
  ReshardMap map = {};
  bool dry_run = false;  // everything but writing; the report says what would be written
  exec::ConvertOptions convert = {};
};

// INVALID_ARGUMENT for a source that is no checkpoint of Megatron, for sizes that do not divide it,
// for rules of the map that do not fit it and for what exec::convert refuses; FAILED_PRECONDITION
// where it cannot be proved what lies in a bucket, and where buckets are asked for and something
// that decides over them is not known; DATA_LOSS for buckets that do not add up.
Result<exec::Report> reshard(exec::Runtime& reading, exec::Runtime& writing,
                             const format::Location& source, const format::Location& target,
                             const ReshardOptions& options, const exec::CallContext& call);

}  // namespace shardwright::reshard

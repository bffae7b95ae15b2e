// SPDX-License-Identifier: Apache-2.0
//
// The buckets of the distributed optimizer of the target: what each of its ranks declares, in the
// order that the source proves, in buckets as Megatron cuts them. Their elements are those of
// states with the shapes of their parameters; nothing is copied.
#pragma once

#include <vector>

#include "core/exec/checkpoint.h"
#include "core/exec/checkpoint_view.h"
#include "core/reshard/bucket_placement.h"
#include "core/reshard/declared_lists.h"
#include "core/reshard/target_grid.h"

namespace shardwright::reshard {

struct BucketRules {
  int64_t bucket_size = 0;     // of the first stage; later ones have one bucket for each buffer
  bool for_bandwidth = false;  // how they are padded
};

struct TargetBucketsInput {
  const exec::Checkpoint& source;  // in whose catalog parameters have their numbers
  const exec::Checkpoint& states;  // weights and states of the target, under their names there
  const DeclaredLists& declared;
  const TargetGrid& grid;
  JobShape from;
  JobShape to;
  BucketRules rules;
};

struct TargetBuckets {
  std::vector<Bucket> buckets;            // `states` count nothing
  std::vector<exec::ViewTensor> tensors;  // over the input's `states`
};

// Adds the chunks of the buckets to the placement. FAILED_PRECONDITION naming what decides over
// them and is not known: how ranks share out a parameter, which is declared first, which stage
// has which layers; a parameter that the mapping has renamed. INVALID_ARGUMENT for shapes in which
// megatron-core does not train.
Result<TargetBuckets> make_target_buckets(const TargetBucketsInput& input,
                                          BucketPlacement* placement);

}  // namespace shardwright::reshard

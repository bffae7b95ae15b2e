// SPDX-License-Identifier: Apache-2.0
//
// The job that a checkpoint is made for, which is read from JSON. Values.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace shardwright::reshard {

enum class OptimizerLayout : int32_t {
  kFullyReshardable = 0,  // states of the shapes of their parameters: any job loads them
  kDpReshardable = 1,     // as buckets: jobs of the same tensor, pipeline and expert parallel sizes
};

// Sizes of the parallel groups.
struct JobShape {
  int64_t tensor = 1;
  int64_t pipeline = 1;
  int64_t expert = 1;
  int64_t data = 1;           // of all parameters but experts
  int64_t expert_tensor = 1;  // ranks that share out the rows of one expert

  // Data-parallel ranks of experts; 0 where the sizes do not share out the ranks of a stage.
  int64_t expert_data() const {
    const int64_t ranks = tensor * data;
    return ranks % (expert * expert_tensor) == 0 ? ranks / (expert * expert_tensor) : 0;
  }
  friend bool operator==(const JobShape&, const JobShape&) = default;
};

struct TargetJob {
  JobShape shape;
  OptimizerLayout optimizer = OptimizerLayout::kFullyReshardable;
  std::vector<int64_t> pipeline_layers = {};  // of each stage; empty: all have as many
};

// {"tensor_model_parallel_size": 1, "pipeline_model_parallel_size": 1,
//  "expert_model_parallel_size": 1, "expert_tensor_parallel_size": 1, "data_parallel_size": 2,
//  "pipeline_layers": [3, 1], "optimizer": "fully_reshardable"}; what is not there keeps what `job`
// has. INVALID_ARGUMENT with line and column.
Status read_target_job(std::string_view json, TargetJob* job);
// INVALID_ARGUMENT for a size below 1 or above 2^20, for layers of another number of stages.
Status check_target_job(const TargetJob& job);

}  // namespace shardwright::reshard

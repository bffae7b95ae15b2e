// SPDX-License-Identifier: Apache-2.0
//
// What a host chooses for a unit, and the numbers that the C surface uses for it. Values; checked
// where they are given to a unit.
#pragma once

#include <cstdint>

#include "core/hsdp/unit_layout.h"
#include "core/tensor/dtype.h"

namespace shardwright::hsdp {

// What becomes of the gathered parameters after forward. Numbers are those of the C surface.
enum class ReshardPolicy : int32_t {
  kAutomatic = 0,  // kReshard; kKeep for a unit inside whose forward others run (a root)
  kReshard = 1,    // freed; backward gathers again
  kKeep = 2,       // kept until backward has used them
  kSecondary = 3,  // each rank keeps 1/n of them; backward gathers over n ranks
};

// What a parameter without a gradient adds to a reduction.
enum class UnusedPolicy : int32_t {
  kZero = 0,  // zeros, so that what travels never depends on what a rank computed
  kSkip = 1,  // nothing; ranks must agree on which have none
};

enum class GradientOperation : int32_t { kAverage = 0, kSum = 1 };

// Fixed when the unit is created.
struct UnitOptions {
  DType parameter_dtype = DType::kInvalid;  // gathered and computed in; kInvalid = as stored
  DType reduce_dtype = DType::kInvalid;     // kInvalid = gradient dtype
  DType output_dtype = DType::kInvalid;     // of the host's outputs; kept for it, not used here
  DType gradient_dtype = DType::kInvalid;   // of the shard's gradient; kInvalid = as stored
  LayoutMode layout_mode = LayoutMode::kRow;
  // Shards and their gradients lie in pinned memory of the host, and are copied to the device to be
  // gathered; where that is the host, as without.
  bool offload = false;
};

// May change between iterations, equally on all ranks.
struct UnitSettings {
  ReshardPolicy reshard_after_forward = ReshardPolicy::kAutomatic;
  int32_t secondary_size = 0;          // of kSecondary: n, which divides the shard axis
  bool reshard_after_backward = true;  // false: the host reshards before it changes the shards
  bool requires_gradient_sync = true;  // false: gradients stay on this rank, unsharded
  bool requires_all_reduce = true;     // false: sums over the shard axis wait for the others
  bool unshard_in_backward = true;     // false: backward needs no parameters of this unit
  bool keep_unsharded_memory = false;  // resharding keeps the memory of full parameters
  GradientOperation operation = GradientOperation::kAverage;
  double divide_factor = 0.0;  // of an average; 0 = the ranks that share data
  UnusedPolicy unused = UnusedPolicy::kZero;
};

// Fixed when the context is created.
struct HsdpOptions {
  int32_t shard_axis = 0;       // of the mesh; -1 none: parameters are whole on each rank
  int32_t replicate_axis = -1;  // -1 none
  // Work beside the caller: 0 none (all happens where it is waited for), 1 one lane for all, 3 one
  // each for gathers, reductions and what is summed over replicas.
  int32_t lanes = 0;
  int32_t max_inflight_reduce = 1;  // packed gradients alive at once
  int32_t prefetch_depth = 1;       // units gathered ahead; 0 none
  uint64_t prefetch_bytes_max = 0;  // of units gathered ahead; 0 = no limit
  bool unordered = false;           // takes sums of the transport's own order
  int32_t order_guard_steps = 3;    // first steps after which ranks compare what they issued
  int64_t timeout_ns = -1;          // of each collective; negative = no limit
};

}  // namespace shardwright::hsdp

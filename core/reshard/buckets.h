// SPDX-License-Identifier: Apache-2.0
//
// Buckets: the states of Megatron's distributed optimizer as dp_reshardable stores them. The
// parameters that ranks of one model-parallel place hold lie one after the other in buffers, which
// are cut into buckets; of each bucket there is a tensor of one dimension for each state. Values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/exec/checkpoint.h"

namespace shardwright::reshard {

struct Bucket {
  std::string prefix;   // of its optimizer, where several are chained: "chained_0."
  uint32_t group = 0;   // dp_group_idx: the model-parallel place
  uint32_t buffer = 0;  // gbuf_idx
  std::string dtypes;   // "(torch.bfloat16, torch.float32)", of parameters and gradients
  uint32_t number = 0;  // bucket_idx
  std::map<std::string, size_t> states;  // "param", "exp_avg", ...: number of the tensor
  int64_t elements = 0;                  // of each state, without the pad at the end
  int64_t padded = 0;                    // with it, as the checkpoint says; 0: it does not
  bool is_gathered = false;     // several buckets, one after the other (gathered_buffers.h)
  std::vector<int64_t> bounds;  // where chunks of "param" begin, ascending, and their end

  // "chained_0.optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(...).bucket_idx_0"
  std::string name() const;
  std::string group_name() const;
};

// The name of an object that says the sizes of the buckets of a group, without and with pads.
inline constexpr std::string_view kSizes = "per_bucket_numel_unpadded";
inline constexpr std::string_view kPaddedSizes = "per_bucket_numel";

inline constexpr std::string_view kMainState = "param";  // the parameter that is trained
// Prefixes where experts are shared out: of all but them, and of them.
inline constexpr std::string_view kOfDense = "chained_0.";
inline constexpr std::string_view kOfExperts = "chained_1.";

inline constexpr std::string_view kOfGroup = "optimizer.distributed.dp_group_idx_";
// "chained_0.optimizer.distributed.dp_group_idx_0"
std::string group_name(std::string_view prefix, int64_t group);

// All buckets, by optimizer, group, buffer and number; none where the optimizer is stored in
// another way. DATA_LOSS naming the bucket: one without "param", with states of different sizes, a
// number that is not there, or sizes other than per_bucket_numel_unpadded says.
Result<std::vector<Bucket>> find_buckets(const exec::Checkpoint& source);

}  // namespace shardwright::reshard

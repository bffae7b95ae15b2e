// SPDX-License-Identifier: Apache-2.0
//
// Which dtypes the parameters of a unit take on their way: the rules of PyTorch FSDP2 (torch 2.15,
// MixedPrecisionPolicy), where a policy that changes nothing is none. Pure.
#pragma once

#include "core/base/result.h"
#include "core/hsdp/options.h"
#include "core/tensor/dtype.h"

namespace shardwright::hsdp {

struct DTypePolicy {
  DType stored = DType::kInvalid;    // of the shard
  DType compute = DType::kInvalid;   // gathered and given to the host
  DType reduce = DType::kInvalid;    // gradients travel and are summed in it
  DType gradient = DType::kInvalid;  // of the gradient of the shard

  bool casts_parameters() const { return stored != compute; }
  friend bool operator==(const DTypePolicy&, const DTypePolicy&) = default;
};

// Of parameters that are stored in this dtype. Those that are not floating point keep it, and have
// no gradients. INVALID_ARGUMENT where the unit's dtypes are not floating point, UNIMPLEMENTED
// where one cannot be cast or summed.
Result<DTypePolicy> dtype_policy(const UnitOptions& options, DType stored);

// float16, bfloat16, float32, float64: what gradients may be of.
bool carries_gradients(DType dtype);

}  // namespace shardwright::hsdp

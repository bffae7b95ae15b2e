// SPDX-License-Identifier: Apache-2.0
//
// GlobalNorm: the norm of the gradients of all shards. Powers are summed in float64, in the order
// of units and elements, then over the ranks of the shard axis in their order, so that all ranks
// get the same bits; parameters that all ranks hold whole are counted once. Replicas have equal
// gradients and need not meet. One thread.
#pragma once

#include <span>

#include "core/base/result.h"
#include "core/tensor/dtype.h"

namespace shardwright::hsdp::internal {

class GroupGradients;
class Runtime;

class GlobalNorm {
 public:
  explicit GlobalNorm(double p) : p_(p) {}

  // INVALID_ARGUMENT unless p is positive.
  Status check() const;
  Status add(GroupGradients& gradients);
  // Collective over the shard axis.
  Result<double> finish(Runtime& runtime);

 private:
  void join(double term, double* total) const;
  Status add_elements(DType dtype, std::span<const std::byte> elements, double* total) const;

  double p_;
  double sharded_ = 0;  // of this rank's shards
  double whole_ = 0;    // of what all ranks hold
};

}  // namespace shardwright::hsdp::internal

// SPDX-License-Identifier: Apache-2.0
//
// GroupGradients: the gradients of one group at rest: whole ones of this rank, sums over the shard
// axis that wait for replicas (partial), and the gradient of the shard. The latter two lie as the
// shard of the parameters that are trained does; sums of fewer parameters are spread to it. Used by
// its unit, under the lock of that.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/hsdp/local_gradient_internal.h"
#include "core/hsdp/options.h"
#include "core/hsdp/unit_group_internal.h"

namespace shardwright::hsdp::internal {

// Which parameters of a group, and how their gradients lie. Immutable.
struct GradientSet {
  std::vector<bool> members;
  std::shared_ptr<const UnitLayout> layout;  // co-owned by the sets that lie alike
};
using GradientSetPtr = std::shared_ptr<const GradientSet>;  // co-owned by reductions under way

class GroupGradients {
 public:
  explicit GroupGradients(UnitGroup& group);

  UnitGroup& group() { return group_; }
  // None where no parameter is trained.
  const GradientSetPtr& trained() const { return trained_; }
  bool is_trained(size_t parameter) const {
    return trained_ != nullptr && trained_->members[parameter];
  }
  // What was summed for parameters that are trained now stays.
  Status set_trained(const std::vector<bool>& members);

  LocalGradient& local(size_t parameter) { return local_[parameter]; }
  bool has_local() const;
  void clear_local();
  // Of which parameters gradients travel: all that are trained, or those that have one.
  GradientSetPtr travelling(UnusedPolicy unused);
  // Bytes of one rank's sum, and of what is packed for all ranks.
  uint64_t sum_bytes(const GradientSet& set) const;
  uint64_t packed_bytes(const GradientSet& set) const;
  // Whole gradients to the parts of all ranks, in the reduce dtype; zero where there is none.
  Status pack(const GradientSet& set, std::span<std::byte> packed);

  bool has_partial() const { return static_cast<bool>(partial_); }
  // sum: over the shard axis, in the reduce dtype. It goes on top of what waits already.
  Status add_partial(const GradientSet& set, Buffer sum);
  // What waits, and sum on top of it: all that goes over the replicas now.
  Result<Buffer> join_partial(GradientSetPtr* set, Buffer sum);

  // sum: over all ranks, scaled, in the reduce dtype; cast, and added to the gradient of the shard.
  Status add_to_shard(const GradientSet& set, Buffer sum);
  bool has_shard_gradient(size_t parameter) const;
  // Elements of this rank's part, in the gradient dtype.
  std::span<std::byte> shard_gradient(size_t parameter) const;
  // Co-owns their memory, also when this has another gradient or none.
  std::shared_ptr<const void> shard_gradient_owner() const { return gradient_; }
  // The same of all parameters, padding included; empty where there is none.
  std::span<std::byte> shard_gradients() const {
    return gradient_ ? gradient_->bytes() : std::span<std::byte>();
  }
  void clear_partial();
  void clear_shard_gradient();

 private:
  // Elements of a gradient, one rank's.
  struct Sum {
    std::span<std::byte> bytes;
    DType dtype = DType::kInvalid;
    Home home;
  };
  Sum travelling_sum(std::span<std::byte> bytes) const;
  Result<Buffer> spread(const GradientSet& from, const Sum& sum, const GradientSet& to);
  Result<Buffer> as_gradient(Buffer sum);
  Result<Buffer> bring_home(Buffer gradient);
  device::MemoryWork& work() const;
  // RESOURCE_EXHAUSTED.
  Status keep_gradient(Buffer sum);

  UnitGroup& group_;
  GradientSetPtr trained_;
  std::map<std::vector<bool>, GradientSetPtr> subsets_;  // of trained_, that travelled
  std::vector<LocalGradient> local_;
  Buffer partial_;
  std::vector<bool> in_partial_;
  std::shared_ptr<Buffer> gradient_;  // co-owned with hosts that look at it; null: there is none
  std::vector<bool> in_gradient_;
};

}  // namespace shardwright::hsdp::internal

// SPDX-License-Identifier: Apache-2.0
//
// The reduction of one unit's gradients, in the order that is a contract (section numbers are those
// of the steps in reduction.cc): sum over the shard axis in rank order, sum over the replicas in
// rank order, scale, cast, add to the gradient of the shard. Used by the calling thread; a lane may
// wait for the transport and add beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/result.h"
#include "core/hsdp/channel_internal.h"
#include "core/hsdp/group_gradients_internal.h"
#include "core/hsdp/lane_step_internal.h"
#include "core/hsdp/options.h"
#include "core/hsdp/unit_memory.h"

namespace shardwright::hsdp::internal {

// How a reduction is done; taken from the settings of the unit when it begins.
struct ReductionPlan {
  UnusedPolicy unused = UnusedPolicy::kZero;
  bool all_reduce = true;  // false: sums over the shard axis wait in the group
  GradientOperation operation = GradientOperation::kAverage;
  double divide_factor = 0.0;
};

class GroupReduction {
 public:
  // Packs; nothing is issued, and the gradients are as they were. Null where none travel.
  static Result<std::unique_ptr<GroupReduction>> pack(GroupGradients& gradients,
                                                      const ReductionPlan& plan);
  ~GroupReduction();

  // A failure of these ends the context: other ranks go on.
  Status issue();
  // True when finish_scatter will not wait, false after timeout_ns.
  Result<bool> wait_scatter(int64_t timeout_ns);
  Status finish_scatter();
  // After finish_scatter: finish will not wait.
  bool has_come() const { return !work_; }
  // Likewise: true when it will not, false after timeout_ns.
  Result<bool> wait_sum(int64_t timeout_ns);
  Status finish();

 private:
  struct Memory {
    Buffer packed;
    Buffer landing;    // transports without ordered sums
    Buffer scattered;  // this rank's sum
  };

  GroupReduction(GroupGradients& gradients, const ReductionPlan& plan, GradientSetPtr set);
  Status issue_scatter(Channel& channel);
  ChannelCall channel_call(uint64_t bytes) const;
  Runtime& runtime() const { return *gradients_.group().owner().runtime; }

  GroupGradients& gradients_;
  ReductionPlan plan_;
  GradientSetPtr set_;
  double scale_ = 1.0;              // of the sum over all ranks
  std::shared_ptr<Memory> memory_;  // co-owned by the transport until it has let go
  ChannelWork work_;
  LaneStep step_;  // last: ends before what it waits for goes
  bool on_lane_ = false;
  bool waits_ = false;  // for replicas, in the group
};

class UnitReduction {
 public:
  explicit UnitReduction(UnitId unit) : unit_(unit) {}
  UnitId unit() const { return unit_; }
  void add(std::unique_ptr<GroupReduction> group) { groups_.push_back(std::move(group)); }
  bool is_empty() const { return groups_.empty(); }
  uint64_t number() const { return number_; }
  void set_number(uint64_t number) { number_ = number; }
  bool is_scattering() const { return scattering_; }
  bool has_come() const;  // all sums, over the replicas too

  Status issue();
  Result<bool> wait_scatter(int64_t timeout_ns);
  Status finish_scatter();
  Result<bool> wait_sums(int64_t timeout_ns);
  Status finish();

 private:
  UnitId unit_;
  std::vector<std::unique_ptr<GroupReduction>> groups_;
  uint64_t number_ = 0;
  bool scattering_ = true;  // packed gradients are alive
};

}  // namespace shardwright::hsdp::internal

// SPDX-License-Identifier: Apache-2.0
//
// Runtime: what the units of one context share: communicators, lanes, memory, the order in which
// units run, the reductions under way, and the first failure. A context that has failed is of no
// use until it is reset: its communicators are aborted, and what was pending is given up.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/device/lane_device.h"
#include "core/hsdp/channel_internal.h"
#include "core/hsdp/home_internal.h"
#include "core/hsdp/hsdp_mesh.h"
#include "core/hsdp/options.h"
#include "core/hsdp/schedule.h"
#include "core/hsdp/unit_memory.h"
#include "core/hsdp/unit_state.h"

namespace shardwright::hsdp {

class Unit;

namespace internal {

class UnitReduction;

enum class Direction : int32_t { kForward, kBackward };
enum class LaneRole : size_t { kGather = 0, kReduce = 1, kReplicate = 2 };

class Runtime {
 public:
  static Result<std::unique_ptr<Runtime>> create(const HsdpOptions& options,
                                                 std::shared_ptr<HsdpMesh> mesh,
                                                 std::shared_ptr<device::LaneDevice> device);
  ~Runtime();

  HsdpOptions& options() { return options_; }
  const HsdpOptions& options() const { return options_; }
  const HsdpMesh& mesh() const { return *mesh_; }
  device::LaneDevice& device() { return *device_; }
  const std::shared_ptr<device::LaneDevice>& shared_device() const { return device_; }
  UnitMemory& memory() { return *memory_; }
  // On the units' memory, in the order of the calls. It has ended when a call of the host returns,
  // and when an operation of a channel is issued.
  device::MemoryWork& work() { return *work_; }
  // Of the host, for what is copied to and from the device.
  UnitMemory& pinned() { return *pinned_; }
  // Of shards and their gradients: on the device, or, offloaded, in pinned memory.
  Home shard_home(bool offloads);
  // Beside the caller; null where options or the device have none.
  device::Lane* lane(LaneRole role) const { return lane_of_role_[static_cast<size_t>(role)]; }
  // A unit runs; what is to be gathered ahead.
  std::vector<UnitId> begin_forward(UnitId unit);
  std::vector<UnitId> begin_backward(UnitId unit);
  // Whether it is the outermost and others ran inside of it.
  bool end_forward(UnitId unit);
  void finish_iteration();

  // Null where the axis has one rank.
  Channel* gather_channel() { return gather_.get(); }
  Channel* reduce_channel() { return reduce_.get(); }
  Channel* replicate_channel() { return replicate_.get(); }
  // FAILED_PRECONDITION where the mesh has no communicator of that size.
  Result<Channel*> secondary_channel(int32_t size);

  // FAILED_PRECONDITION with the first failure as its cause, once there was one.
  Status check_usable() const;
  const Status& failure() const { return failure_; }
  // Runs a call of the host: refused while the context has failed; where it fails in it, what was
  // pending is given up afterwards, when no lock is held.
  template <typename Call>
  auto enter(Call&& call) -> decltype(call()) {
    if (Status usable = check_usable(); !usable.ok()) return usable;
    auto outcome = call();
    if (Status ended = work_->finish(); !ended.ok() && failure_.ok()) {
      Status failed = fail(ended);
      give_up();
      return failed;
    }
    if (!failure_.ok()) give_up();
    return outcome;
  }
  // Other ranks go on where this one cannot: ends the context, wakes them, and returns the first
  // failure. Inside enter.
  Status fail(const Status& cause);
  // Before the units go: gives up what is under way.
  void release();
  // Forgets the failure. FAILED_PRECONDITION while the mesh has a communicator that failed.
  Status renew();

  void add_unit(Unit* unit);
  // Gathers ahead, in this order, as far as the limits go.
  Status prefetch(const std::vector<UnitId>& units, Direction direction);

  // Reductions in the order in which they were issued.
  // Those under way are brought on so that one more may be packed.
  Status make_room_for_reduction();
  void add_reduction(std::unique_ptr<UnitReduction> reduction);
  // Brings all up to this number on as far as they come within timeout_ns each; whether they have
  // ended. 0 never waits: sums over replicas then begin only where issuing them does not.
  Result<bool> bring_on_reductions(uint64_t last, int64_t timeout_ns);
  // Brings all up to this number to their end; the numbers count from 1.
  Status finish_reductions(uint64_t last);
  Status finish_all_reductions() { return finish_reductions(issued_reductions_); }
  uint64_t issued_reductions() const { return issued_reductions_; }
  bool has_ended(uint64_t reduction) const;
  // Of the unit's reductions under way.
  GradientState gradient_state(UnitId unit) const;

  // Ranks compare what they issued, in the first steps.
  Status compare_order();

 private:
  Runtime() = default;
  Status make_lanes();
  Status make_channels();
  Result<std::shared_ptr<Channel>> make_channel(int32_t axis, CommunicatorLane lane) const;
  Result<std::shared_ptr<Channel>> make_channel(collective::CommunicatorPtr communicator) const;
  void give_up();
  std::vector<collective::CommunicatorPtr> used_communicators() const;
  Status compare_order(Channel& channel, int32_t axis, int32_t first_coordinate, bool last);
  std::string unit_name(UnitId unit) const;

  HsdpOptions options_;
  std::shared_ptr<HsdpMesh> mesh_;              // co-owned with the host
  std::shared_ptr<device::LaneDevice> device_;  // likewise
  std::shared_ptr<device::MemoryWork> work_;
  std::shared_ptr<device::MemoryWork> host_work_;
  std::shared_ptr<UnitMemory> memory_;  // co-owned by staged communicators, like pinned_
  std::shared_ptr<UnitMemory> pinned_;
  std::vector<std::unique_ptr<device::Lane>> lanes_;
  std::array<device::Lane*, 3> lane_of_role_{};
  std::shared_ptr<Channel> gather_;
  std::shared_ptr<Channel> reduce_;  // the same as gather_ where it has no communicator of its own
  std::shared_ptr<Channel> replicate_;
  std::map<int32_t, std::shared_ptr<Channel>> secondary_;
  Schedule schedule_;
  std::vector<UnitId> running_;  // forwards that have begun, the outermost first
  bool nested_ = false;          // another one ran inside the outermost
  std::vector<Unit*> units_;     // in the order of creation; not owned
  std::deque<std::unique_ptr<UnitReduction>> reductions_;
  uint64_t issued_reductions_ = 0;
  int32_t compared_steps_ = 0;
  Status failure_;
  std::vector<collective::CommunicatorPtr> failed_communicators_;
};

}  // namespace internal
}  // namespace shardwright::hsdp

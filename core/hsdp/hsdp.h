// SPDX-License-Identifier: Apache-2.0
//
// Hsdp: hybrid sharded data parallel training as one rank sees it. Parameters are sharded over one
// axis of a mesh and replicated over another; units of them are gathered before they are used and
// freed after it, and their gradients are summed in an order that is a contract: over the shard
// axis in rank order, over the replicas in rank order, scaled, cast, added to the gradient of the
// shard. So a run has the bits of one process that adds in the same order. Knows no framework: a
// host tells it what phase a unit is in. Calls come from any thread, one at a time, in the same
// order on all ranks.
//
// A failed wait ends the context: its communicators are aborted with the first cause, what was
// pending returns it and is freed, and only reset (after new communicators) is legal.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/device/lane_device.h"
#include "core/hsdp/hsdp_mesh.h"
#include "core/hsdp/memory_ledger.h"
#include "core/hsdp/options.h"
#include "core/hsdp/unit.h"
#include "core/tensor/window_access.h"

namespace shardwright::hsdp {

namespace internal {
class Runtime;
}

struct HsdpStats {
  MemoryStats memory;
  int64_t padding_bytes = 0;           // of this rank's shards
  std::vector<std::string> unsharded;  // units that are not SHARDED
};

class Hsdp {
 public:
  // The mesh has its communicators. INVALID_ARGUMENT for options that are none; FAILED_PRECONDITION
  // where an axis of several ranks has no communicator, or one that does not sum in rank order
  // though the options ask for it.
  static Result<std::unique_ptr<Hsdp>> create(const HsdpOptions& options,
                                              std::shared_ptr<HsdpMesh> mesh,
                                              std::shared_ptr<device::LaneDevice> device);
  ~Hsdp();

  // Lives as long as this. Names are for messages, and equal on all ranks. Failures of
  // Unit::set_settings.
  Result<Unit*> create_unit(std::string name, const UnitOptions& options,
                            const UnitSettings& settings = {});
  std::span<const std::unique_ptr<Unit>> units() const { return units_; }

  // The backward is over: reduces what was not reduced yet. In the last one of an iteration also
  // waits for all reductions, drops what was gathered in vain, remembers in which order units ran,
  // and in the first iterations compares it with the other ranks (ABORTED naming the first unit
  // that differs and both ranks).
  Status finalize_backward();
  // Default true; false: more backwards follow in this iteration.
  void set_is_last_backward(bool is_last) { is_last_backward_ = is_last; }
  bool is_last_backward() const { return is_last_backward_; }
  // Parameters have changed: whatever was gathered before is of no use. FAILED_PRECONDITION naming
  // a unit whose gradients still wait for the replicas.
  Status step_event();
  // Recovery, on all ranks: gives up what is under way, drops all gradients and all that was
  // gathered. After a failure the mesh needs new communicators first. Without a failure waits for
  // what is under way.
  Status reset();

  // Norm of order p (positive; infinity: the largest) of the gradients of all shards, replicas
  // counted once; the same on all ranks. Collective over the shard axis.
  Result<double> global_norm(double p);
  Status scale_gradients(double factor);
  // There are no gradients any more.
  Status zero_gradients();

  // In the whole context, from now on.
  Status set_max_inflight_reduce(int32_t count);
  Status set_prefetch_depth(int32_t depth);

  HsdpStats stats() const;
  const HsdpMesh& mesh() const;
  const device::LaneDevice& device() const;  // has the memory of all units
  // What states that borrow memory of the device reach it by; null where that is the host's.
  std::shared_ptr<WindowAccess> memory_access() const;
  const HsdpOptions& options() const;

 private:
  Hsdp() = default;

  std::unique_ptr<internal::Runtime> runtime_;
  std::vector<std::unique_ptr<Unit>> units_;  // before runtime_ goes
  bool is_last_backward_ = true;
};

}  // namespace shardwright::hsdp

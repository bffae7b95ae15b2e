// SPDX-License-Identifier: Apache-2.0
//
// Channel: one communicator as units use it. Numbers the operations, records them for the order
// guard, and gives each failure the unit, the operation and its number. Operations are issued by
// the calling thread only, in the same order on all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/result.h"
#include "core/collective/communicator.h"
#include "core/device/memory_work.h"
#include "core/hsdp/order_guard.h"

namespace shardwright::hsdp::internal {

// Whose operation, on how many elements per part.
struct ChannelCall {
  UnitId unit = 0;
  const std::string* unit_name = nullptr;  // outlives the work
  DType dtype = DType::kFloat32;
  uint64_t count = 0;
  std::shared_ptr<const void> memory;  // of in and out; co-owned by the transport
};

// An operation under way; see collective::Work.
class ChannelWork {
 public:
  ChannelWork() = default;
  ChannelWork(collective::WorkPtr work, collective::OperationKind kind, const ChannelCall& call,
              uint64_t sequence)
      : work_(std::move(work)), kind_(kind), call_(call), sequence_(sequence) {}

  explicit operator bool() const { return work_ != nullptr; }
  Result<bool> wait(int64_t timeout_ns);
  Result<bool> test();
  // Gives it up, or forgets one that has ended.
  void reset() {
    work_.reset();
    call_.memory.reset();
  }

 private:
  Result<bool> named(Result<bool> outcome) const;

  collective::WorkPtr work_;
  collective::OperationKind kind_ = collective::OperationKind::kAllGather;
  ChannelCall call_;
  uint64_t sequence_ = 0;
};

class Channel {
 public:
  // Between the memory of units and of the host, and what the communicator reaches.
  struct Reach {
    collective::CommunicatorPtr communicator;  // the mesh's
    collective::CommunicatorPtr of_units;      // the same, or staged
    collective::CommunicatorPtr of_host;       // likewise
    std::shared_ptr<device::MemoryWork> work;  // ends before an operation reads what it wrote
  };
  Channel(Reach reach, int64_t timeout_ns, bool is_guarded);

  int32_t size() const { return reach_.communicator->size(); }
  // Sums come from the transport itself; else parts travel and are added here.
  bool sums_in_order(bool any_order) const {
    return any_order || reach_.communicator->can(collective::kOrderedSum);
  }
  bool issues_without_waiting() const {
    return reach_.communicator->can(collective::kIsAsynchronous);
  }
  std::string_view communicator_name() const { return reach_.communicator->name(); }
  const collective::CommunicatorPtr& communicator() const { return reach_.communicator; }
  Result<ChannelWork> all_gather(const ChannelCall& call, std::span<const std::byte> in,
                                 std::span<std::byte> out);
  Result<ChannelWork> all_to_all(const ChannelCall& call, std::span<const std::byte> in,
                                 std::span<std::byte> out);
  Result<ChannelWork> reduce_scatter(const ChannelCall& call, std::span<const std::byte> in,
                                     std::span<std::byte> out);
  Result<ChannelWork> all_reduce(const ChannelCall& call, std::span<std::byte> data);
  // Blocks; outside of the guard. For what ranks tell each other.
  Status exchange(std::span<const std::byte> mine, std::span<std::byte> all);
  // After each step; compares while the guard is on. last: the guard ends with it.
  Status compare_order(const OrderGuard::Names& names, bool last);

 private:
  template <typename Issue>
  Result<ChannelWork> issue(collective::OperationKind kind, const ChannelCall& call, uint64_t bytes,
                            Issue&& operation);

  const Reach reach_;  // co-owned with the mesh and the context
  int64_t timeout_ns_;
  uint64_t sequence_ = 0;
  OrderGuard guard_;
};

}  // namespace shardwright::hsdp::internal

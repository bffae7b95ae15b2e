// SPDX-License-Identifier: Apache-2.0
//
// FakeCommunicator: one rank of a world that is not there. Every operation that another
// communicator would take ends at once and moves nothing; what was issued is counted, so that
// estimates and tests see what a real one would have been asked for. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/collective/communicator.h"
#include "core/concurrency/mutex.h"

namespace shardwright::collective {

struct IssuedOperation {
  OperationKind kind = OperationKind::kBarrier;
  CommunicatorCall call;  // without its memory
  int32_t root = 0;
  uint64_t received_bytes = 0;  // that would have come from other ranks
};

// Of one kind of operation.
struct IssuedCount {
  uint64_t operations = 0;
  uint64_t received_bytes = 0;
};

class FakeCommunicator final : public Communicator {
 public:
  // The list of what was issued ends there; the counts go on.
  static constexpr size_t kLongestList = size_t{1} << 16;

  FakeCommunicator(int32_t rank, int32_t world_size) : rank_(rank), size_(world_size) {}

  IssuedCount count(OperationKind kind) const SHW_EXCLUDES(mutex_);
  // In the order in which they were issued.
  std::vector<IssuedOperation> issued() const SHW_EXCLUDES(mutex_);
  // Counts and list begin again.
  void forget() SHW_EXCLUDES(mutex_);

  int32_t rank() const override { return rank_; }
  int32_t size() const override { return size_; }
  std::string_view name() const override { return "fake"; }
  // What lets a caller go the shortest way.
  uint64_t capabilities() const override;
  Result<WorkPtr> all_gather(const CommunicatorCall& call, std::span<const std::byte> in,
                             std::span<std::byte> out) override;
  Result<WorkPtr> all_to_all(const CommunicatorCall& call, std::span<const std::byte> in,
                             std::span<std::byte> out) override;
  Result<WorkPtr> reduce_scatter(const CommunicatorCall& call, std::span<const std::byte> in,
                                 std::span<std::byte> out) override;
  Result<WorkPtr> all_reduce(const CommunicatorCall& call, std::span<std::byte> data) override;
  Result<WorkPtr> broadcast(const CommunicatorCall& call, std::span<std::byte> data,
                            int32_t root) override;
  Result<WorkPtr> barrier(const CommunicatorCall& call) override;
  void abort(const Status& cause) noexcept override SHW_EXCLUDES(mutex_);

 private:
  Result<WorkPtr> issue(OperationKind kind, const CommunicatorCall& call,
                        std::span<const std::byte> in, std::span<std::byte> out, int32_t root = 0)
      SHW_EXCLUDES(mutex_);

  const int32_t rank_;
  const int32_t size_;
  mutable Mutex mutex_;
  std::array<IssuedCount, 6> counts_ SHW_GUARDED_BY(mutex_);  // by kind
  std::vector<IssuedOperation> issued_ SHW_GUARDED_BY(mutex_);
  Status failure_ SHW_GUARDED_BY(mutex_);
};

}  // namespace shardwright::collective

// SPDX-License-Identifier: Apache-2.0
#include "core/collective/fake/fake_communicator.h"

#include "core/collective/issue.h"
#include "core/collective/status_bytes_internal.h"
#include "core/collective/tensor_operation.h"

namespace shardwright::collective {

IssuedCount FakeCommunicator::count(OperationKind kind) const {
  const MutexLock lock(mutex_);
  return counts_[static_cast<size_t>(kind)];
}

std::vector<IssuedOperation> FakeCommunicator::issued() const {
  const MutexLock lock(mutex_);
  return issued_;
}

void FakeCommunicator::forget() {
  const MutexLock lock(mutex_);
  counts_ = {};
  issued_.clear();
}

uint64_t FakeCommunicator::capabilities() const {
  return kCanAverage | kCanScaleSum | kInPlaceAllGather | kOrderedSum | kReachesHostMemory |
         kIsAsynchronous;
}

Result<WorkPtr> FakeCommunicator::all_gather(const CommunicatorCall& call,
                                             std::span<const std::byte> in,
                                             std::span<std::byte> out) {
  return issue(OperationKind::kAllGather, call, in, out);
}

Result<WorkPtr> FakeCommunicator::all_to_all(const CommunicatorCall& call,
                                             std::span<const std::byte> in,
                                             std::span<std::byte> out) {
  return issue(OperationKind::kAllToAll, call, in, out);
}

Result<WorkPtr> FakeCommunicator::reduce_scatter(const CommunicatorCall& call,
                                                 std::span<const std::byte> in,
                                                 std::span<std::byte> out) {
  return issue(OperationKind::kReduceScatter, call, in, out);
}

Result<WorkPtr> FakeCommunicator::all_reduce(const CommunicatorCall& call,
                                             std::span<std::byte> data) {
  return issue(OperationKind::kAllReduce, call, {}, data);
}

Result<WorkPtr> FakeCommunicator::broadcast(const CommunicatorCall& call, std::span<std::byte> data,
                                            int32_t root) {
  return issue(OperationKind::kBroadcast, call, {}, data, root);
}

Result<WorkPtr> FakeCommunicator::barrier(const CommunicatorCall& call) {
  return issue(OperationKind::kBarrier, call, {}, {});
}

void FakeCommunicator::abort(const Status& cause) noexcept {
  const MutexLock lock(mutex_);
  if (failure_.ok()) failure_ = internal::cause_for_others(cause);
}

Result<WorkPtr> FakeCommunicator::issue(OperationKind kind, const CommunicatorCall& call,
                                        std::span<const std::byte> in, std::span<std::byte> out,
                                        int32_t root) {
  return issue_or_abort(*this, "issuing a collective", [&]() -> Result<WorkPtr> {
    TensorOperation own{kind, call, root, in, out};
    own.call.memory = nullptr;
    SHW_ASSIGN_OR_RETURN(const uint64_t part_bytes, check_operation(own, rank_, size_));
    const uint64_t bytes = received_bytes(own, part_bytes, size_);
    auto work = std::make_unique<EndedWork>();
    const MutexLock lock(mutex_);
    SHW_RETURN_IF_ERROR(failure_);
    if (issued_.size() < kLongestList) issued_.push_back({kind, own.call, root, bytes});
    IssuedCount& count = counts_[static_cast<size_t>(kind)];
    ++count.operations;
    count.received_bytes += bytes;
    return WorkPtr(std::move(work));
  });
}

CommunicatorPtr make_fake_communicator(int32_t rank, int32_t world_size) {
  return std::make_shared<FakeCommunicator>(rank, world_size);
}

}  // namespace shardwright::collective

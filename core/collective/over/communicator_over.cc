// SPDX-License-Identifier: Apache-2.0
//
// A Communicator over the byte operations of a host. Each ends where it is issued; its kind, unit
// and elements go into the tag, so that transports that compare tags find ranks out of step. Parts
// for every rank go by all_to_all_v; where the host has none, by one all_gather per receiver.
#include <utility>

#include <fmt/format.h>

#include "core/collective/issue.h"
#include "core/collective/status_bytes_internal.h"
#include "core/collective/tensor_operation.h"
#include "core/concurrency/mutex.h"

namespace shardwright::collective {
namespace {

Call call_over(const TensorOperation& own) {
  return {own.call.sequence, operation_tag(own), own.call.timeout_ns};
}

// A failure of the transport, and what it was doing.
Status named(Status status, const TensorOperation& own) {
  if (status.ok()) return status;
  return std::move(status)
      .annotated(operation_title(own))
      .with_detail("unit", fmt::to_string(own.call.unit));
}

class CommunicatorOver final : public Communicator {
 public:
  explicit CommunicatorOver(std::shared_ptr<Collective> inner) : inner_(std::move(inner)) {}

  int32_t rank() const override { return inner_->rank(); }
  int32_t size() const override { return inner_->size(); }
  std::string_view name() const override { return inner_->name(); }
  uint64_t capabilities() const override { return kOrderedSum | kReachesHostMemory; }

  Result<WorkPtr> all_gather(const CommunicatorCall& call, std::span<const std::byte> in,
                             std::span<std::byte> out) override {
    const TensorOperation own{OperationKind::kAllGather, call, 0, in, out};
    return run(own, [&](uint64_t) { return inner_->all_gather(call_over(own), in, out); });
  }

  Result<WorkPtr> all_to_all(const CommunicatorCall& call, std::span<const std::byte> in,
                             std::span<std::byte> out) override {
    const TensorOperation own{OperationKind::kAllToAll, call, 0, in, out};
    return run(own, [&](uint64_t part_bytes) {
      if (!inner_->has_all_to_all_v()) return gather_for_each(own, part_bytes);
      const std::vector<uint64_t> sizes(static_cast<size_t>(size()), part_bytes);
      return inner_->all_to_all_v(call_over(own), in, sizes, out, sizes);
    });
  }

  Result<WorkPtr> broadcast(const CommunicatorCall& call, std::span<std::byte> data,
                            int32_t root) override {
    const TensorOperation own{OperationKind::kBroadcast, call, root, {}, data};
    return run(own, [&](uint64_t) { return inner_->broadcast(call_over(own), data, root); });
  }

  Result<WorkPtr> barrier(const CommunicatorCall& call) override {
    const TensorOperation own{OperationKind::kBarrier, call, 0, {}, {}};
    return run(own, [&](uint64_t) { return inner_->barrier(call_over(own)); });
  }

  void abort(const Status& cause) noexcept override {
    const Status first = end_with(cause);
    inner_->abort(first);
  }

 private:
  template <typename Move>
  Result<WorkPtr> run(const TensorOperation& own, const Move& move) {
    return issue_or_abort(*this, "a collective", [&]() -> Result<WorkPtr> {
      SHW_ASSIGN_OR_RETURN(const uint64_t part_bytes, check_operation(own, rank(), size()));
      auto work = std::make_unique<EndedWork>();
      SHW_RETURN_IF_ERROR(failure());
      SHW_RETURN_IF_ERROR(named(move(part_bytes), own));
      return WorkPtr(std::move(work));
    });
  }

  // What all have for one rank, rank by rank; the parts for others land in memory of no use.
  Status gather_for_each(const TensorOperation& own, uint64_t part_bytes) {
    const size_t others = size() > 1 ? own.out.size() : 0;
    const auto unused = std::make_unique_for_overwrite<std::byte[]>(others);
    const auto part = static_cast<size_t>(part_bytes);
    for (int32_t to = 0; to < size(); ++to) {
      const std::span<std::byte> room = to == rank() ? own.out : std::span(unused.get(), others);
      SHW_RETURN_IF_ERROR(inner_->all_gather(
          call_over(own), own.in.subspan(static_cast<size_t>(to) * part, part), room));
    }
    return {};
  }

  // The first cause, which all later calls get.
  Status end_with(const Status& cause) noexcept SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (failure_.ok()) failure_ = cause.ok() ? internal::cause_for_others(cause) : cause;
    return failure_;
  }
  Status failure() const SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return failure_;
  }

  const std::shared_ptr<Collective> inner_;  // co-owned with the host
  mutable Mutex mutex_;
  Status failure_ SHW_GUARDED_BY(mutex_);
};

}  // namespace

CommunicatorPtr make_communicator_over(std::shared_ptr<Collective> inner) {
  return std::make_shared<CommunicatorOver>(std::move(inner));
}

}  // namespace shardwright::collective

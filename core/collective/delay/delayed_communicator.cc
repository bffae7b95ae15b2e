// SPDX-License-Identifier: Apache-2.0
//
// A Communicator behind an emulated link. The bytes that come to a rank occupy its link one
// operation after the other, from when the operation is issued; the latency comes on top and
// occupies nothing. Whoever waits sleeps, in slices, so that an abort is noticed.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/collective/issue.h"
#include "core/collective/status_bytes_internal.h"
#include "core/collective/tensor_operation.h"
#include "core/concurrency/mutex.h"

namespace shardwright::collective {
namespace {

constexpr int64_t kSliceNs = 10 * 1'000'000;
constexpr double kLongestTransferNs = 1e18;  // 31 years; sums of some of them fit

// Of one rank. Thread-safe.
class DelayedLink {
 public:
  DelayedLink(CommunicatorPtr inner, int64_t latency_ns, double bytes_per_second,
              const Clock& clock)
      : inner_(std::move(inner)),
        latency_ns_(std::clamp<int64_t>(latency_ns, 0, static_cast<int64_t>(kLongestTransferNs))),
        ns_per_byte_(bytes_per_second > 0 ? 1e9 / bytes_per_second : 0),
        clock_(clock) {}

  Communicator& inner() const { return *inner_; }
  const Clock& clock() const { return clock_; }

  // When an operation that is issued now has ended.
  int64_t reserve(uint64_t bytes) SHW_EXCLUDES(mutex_) {
    const double transfer_ns =
        std::min(std::ceil(static_cast<double>(bytes) * ns_per_byte_), kLongestTransferNs);
    const MutexLock lock(mutex_);
    const int64_t begin_ns = std::max(clock_.monotonic_ns(), free_ns_);
    free_ns_ = std::min(begin_ns, static_cast<int64_t>(kLongestTransferNs)) +
               static_cast<int64_t>(transfer_ns);
    return free_ns_ + latency_ns_;
  }

  Status failure() const SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return failure_;
  }

  void abort(const Status& cause) noexcept SHW_EXCLUDES(mutex_) {
    inner_->abort(cause);
    const MutexLock lock(mutex_);
    if (failure_.ok()) failure_ = cause.ok() ? internal::cause_for_others(cause) : cause;
  }

 private:
  const CommunicatorPtr inner_;  // co-owned with whoever made it
  const int64_t latency_ns_;
  const double ns_per_byte_;
  const Clock& clock_;
  mutable Mutex mutex_;
  int64_t free_ns_ SHW_GUARDED_BY(mutex_) = 0;  // when the link is
  Status failure_ SHW_GUARDED_BY(mutex_);
};

class DelayedWork final : public Work {
 public:
  DelayedWork(std::shared_ptr<DelayedLink> link, const TensorOperation& own, int64_t end_ns)
      : link_(std::move(link)), title_(operation_title(own)), end_ns_(end_ns) {
    limit_.clock = &link_->clock();
    if (own.call.timeout_ns >= 0)
      limit_.end_within(link_->clock().monotonic_ns(), own.call.timeout_ns);
  }
  void begin(WorkPtr inner) { inner_ = std::move(inner); }

  Result<bool> wait(int64_t timeout_ns) override {
    CallControl patience = patience_of(timeout_ns);
    if (!has_come_) {
      SHW_ASSIGN_OR_RETURN(has_come_, inner_->wait(timeout_ns));
    }
    return has_come_ ? wait_for_link(patience) : Result<bool>(false);
  }

  Result<bool> test() override {
    if (!has_come_) {
      SHW_ASSIGN_OR_RETURN(has_come_, inner_->test());
    }
    return has_come_ ? wait_for_link(patience_of(0)) : Result<bool>(false);
  }

 private:
  CallControl patience_of(int64_t timeout_ns) const {
    CallControl patience;
    patience.clock = &link_->clock();
    if (timeout_ns >= 0) patience.end_within(link_->clock().monotonic_ns(), timeout_ns);
    return patience;
  }

  Result<bool> wait_for_link(const CallControl& patience) {
    while (!has_ended_) {
      SHW_RETURN_IF_ERROR(link_->failure());
      const int64_t left_ns = end_ns_ - link_->clock().monotonic_ns();
      if (left_ns <= 0) {
        has_ended_ = true;
      } else if (limit_.remaining_ns() == 0) {
        link_->abort(too_slow());
      } else if (patience.remaining_ns() == 0) {
        return false;
      } else {
        link_->clock().wait_ns(slice(left_ns, patience));
      }
    }
    return true;
  }

  int64_t slice(int64_t left_ns, const CallControl& patience) const {
    left_ns = std::min(left_ns, kSliceNs);
    for (const int64_t other_ns : {patience.remaining_ns(), limit_.remaining_ns()}) {
      if (other_ns > 0) left_ns = std::min(left_ns, other_ns);
    }
    return left_ns;
  }

  Status too_slow() const noexcept {
    return without_exceptions("waiting for an emulated link", [this] {
      return deadline_exceeded(fmt::format("{}: the emulated link takes longer", title_));
    });
  }

  std::shared_ptr<DelayedLink> link_;  // co-owned by the communicator and its works
  WorkPtr inner_;
  std::string title_;
  int64_t end_ns_;
  CallControl limit_;      // of the call
  bool has_come_ = false;  // inner has ended
  bool has_ended_ = false;
};

class DelayedCommunicator final : public Communicator {
 public:
  explicit DelayedCommunicator(std::shared_ptr<DelayedLink> link)
      : link_(std::move(link)), name_(fmt::format("delayed {}", link_->inner().name())) {}

  int32_t rank() const override { return link_->inner().rank(); }
  int32_t size() const override { return link_->inner().size(); }
  std::string_view name() const override { return name_; }
  uint64_t capabilities() const override { return link_->inner().capabilities(); }

  Result<WorkPtr> all_gather(const CommunicatorCall& call, std::span<const std::byte> in,
                             std::span<std::byte> out) override {
    return issue({OperationKind::kAllGather, call, 0, in, out},
                 [&] { return link_->inner().all_gather(call, in, out); });
  }
  Result<WorkPtr> all_to_all(const CommunicatorCall& call, std::span<const std::byte> in,
                             std::span<std::byte> out) override {
    return issue({OperationKind::kAllToAll, call, 0, in, out},
                 [&] { return link_->inner().all_to_all(call, in, out); });
  }
  Result<WorkPtr> reduce_scatter(const CommunicatorCall& call, std::span<const std::byte> in,
                                 std::span<std::byte> out) override {
    return issue({OperationKind::kReduceScatter, call, 0, in, out},
                 [&] { return link_->inner().reduce_scatter(call, in, out); });
  }
  Result<WorkPtr> all_reduce(const CommunicatorCall& call, std::span<std::byte> data) override {
    return issue({OperationKind::kAllReduce, call, 0, {}, data},
                 [&] { return link_->inner().all_reduce(call, data); });
  }
  Result<WorkPtr> broadcast(const CommunicatorCall& call, std::span<std::byte> data,
                            int32_t root) override {
    return issue({OperationKind::kBroadcast, call, root, {}, data},
                 [&] { return link_->inner().broadcast(call, data, root); });
  }
  Result<WorkPtr> barrier(const CommunicatorCall& call) override {
    return issue({OperationKind::kBarrier, call, 0, {}, {}},
                 [&] { return link_->inner().barrier(call); });
  }
  void abort(const Status& cause) noexcept override { link_->abort(cause); }

 private:
  template <typename Issue>
  Result<WorkPtr> issue(const TensorOperation& own, const Issue& issue_inner) {
    return issue_or_abort(*this, "issuing a collective", [&]() -> Result<WorkPtr> {
      SHW_ASSIGN_OR_RETURN(const uint64_t part_bytes, check_operation(own, rank(), size()));
      const int64_t end_ns = link_->reserve(received_bytes(own, part_bytes, size()));
      auto work = std::make_unique<DelayedWork>(link_, own, end_ns);
      SHW_ASSIGN_OR_RETURN(WorkPtr inner, issue_inner());
      work->begin(std::move(inner));
      return WorkPtr(std::move(work));
    });
  }

  std::shared_ptr<DelayedLink> link_;  // co-owned by the works
  std::string name_;
};

}  // namespace

CommunicatorPtr make_delayed_communicator(CommunicatorPtr inner, int64_t latency_ns,
                                          double bytes_per_second, const Clock& clock) {
  return std::make_shared<DelayedCommunicator>(
      std::make_shared<DelayedLink>(std::move(inner), latency_ns, bytes_per_second, clock));
}

}  // namespace shardwright::collective

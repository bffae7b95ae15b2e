// SPDX-License-Identifier: Apache-2.0
//
// One thread of the communicator waits for its transfers in the order in which they were issued;
// callers look at what it has found, and at what ended the side group. Whoever fails gives the side
// group up, by which the others learn why.
#include "core/collective/c10d/c10d_communicator.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/collective/c10d/group_operation_internal.h"
#include "core/collective/c10d/process_groups_internal.h"
#include "core/collective/c10d/transfer_internal.h"
#include "core/collective/issue.h"
#include "core/concurrency/mutex.h"

namespace shardwright::collective {
namespace internal {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

// For an operation that the rank which ended the group had completed: its bytes are on their way.
constexpr std::chrono::seconds kGraceForLastBytes{5};

steady_clock::time_point moment_after(int64_t timeout_ns) {
  constexpr nanoseconds kLongest = std::chrono::hours(24 * 365);
  return steady_clock::now() +
         std::min(timeout_ns < 0 ? kLongest : nanoseconds(timeout_ns), kLongest);
}

// A transfer as its work and the thread see it.
struct Issued {
  Issued(SideGroup& group, const TensorOperation& own, uint64_t part_bytes, uint64_t number)
      : transfer(group, own, part_bytes, number), until(moment_after(own.call.timeout_ns)) {}

  Transfer transfer;
  const steady_clock::time_point until;
  bool has_ended = false;  // these two under the mutex of the communicator
  Status outcome;
};
using IssuedPtr =
    std::shared_ptr<Issued>;  // co-owned by its work and, until it has ended, the thread

class C10dCommunicator final : public Communicator {
 public:
  explicit C10dCommunicator(std::shared_ptr<SideGroup> group)
      : group_(std::move(group)), call_(group_->begin_call()), thread_([this] { run(); }) {}
  ~C10dCommunicator() override;

  int32_t rank() const override { return group_->rank(); }
  int32_t size() const override { return group_->size(); }
  std::string_view name() const override { return "c10d"; }
  uint64_t capabilities() const override {
    return kInPlaceAllGather | kOrderedSum | kReachesHostMemory | kIsAsynchronous;
  }

  Result<WorkPtr> all_gather(const CommunicatorCall& call, std::span<const std::byte> in,
                             std::span<std::byte> out) override {
    return issue({OperationKind::kAllGather, call, 0, in, out});
  }
  Result<WorkPtr> all_to_all(const CommunicatorCall& call, std::span<const std::byte> in,
                             std::span<std::byte> out) override {
    return issue({OperationKind::kAllToAll, call, 0, in, out});
  }
  void abort(const Status& cause) noexcept override;

  // As Work::wait. The first failure ends the communicator.
  Result<bool> wait(Issued& issued, steady_clock::time_point until) SHW_EXCLUDES(mutex_);
  // The work goes: afterwards nothing touches the memory of the operation.
  void forget(Issued& issued) noexcept SHW_EXCLUDES(mutex_);

 private:
  Result<WorkPtr> issue(const TensorOperation& own);
  void run() noexcept SHW_EXCLUDES(mutex_);
  Status carry_out(Issued& issued) noexcept;
  Status check_still_on(const Issued& issued) SHW_REQUIRES(mutex_);
  Status too_late(const Issued& issued) const;
  Status fail(const TensorOperation& own, const Status& status) SHW_EXCLUDES(mutex_);
  void give_up(const Status& cause, bool transport_failed) noexcept;
  void interrupt_all() noexcept SHW_EXCLUDES(mutex_);
  bool is_of_this_process() const { return getpid() == process_; }

  const std::shared_ptr<SideGroup> group_;  // co-owned by nobody else, as it is not kept
  const uint64_t call_;
  const pid_t process_ = getpid();
  uint64_t numbers_ = 0;                  // of operations that were issued
  std::atomic<uint64_t> operations_ = 0;  // that have ended well; abort reads it from other threads
  Mutex mutex_;
  Condition changed_;
  bool stopping_ SHW_GUARDED_BY(mutex_) = false;
  std::deque<IssuedPtr> under_way_ SHW_GUARDED_BY(mutex_);
  std::optional<steady_clock::time_point> end_seen_ SHW_GUARDED_BY(mutex_);
  std::thread thread_;
};

class C10dWork final : public Work {
 public:
  C10dWork(C10dCommunicator& communicator, IssuedPtr issued)
      : communicator_(communicator), issued_(std::move(issued)) {}
  ~C10dWork() override { communicator_.forget(*issued_); }

  Result<bool> wait(int64_t timeout_ns) override { return ended_by(moment_after(timeout_ns)); }
  Result<bool> test() override { return ended_by(steady_clock::time_point::min()); }

 private:
  Result<bool> ended_by(steady_clock::time_point until) {
    SHW_RETURN_IF_ERROR(failure_);
    Result<bool> ended = without_exceptions("waiting for a process group",
                                            [&] { return communicator_.wait(*issued_, until); });
    if (ended.ok()) return ended;
    failure_ = ended.status();
    communicator_.abort(failure_);
    return ended;
  }

  C10dCommunicator& communicator_;
  const IssuedPtr issued_;
  Status failure_;
};

// What other ranks wait for does not come from here any more.
C10dCommunicator::~C10dCommunicator() {
  if (!is_of_this_process()) {
    thread_.detach();  // it is one of the parent
    return;
  }
  give_up(
      without_exceptions("leaving a process group",
                         [this] {
                           return aborted(fmt::format("rank {} has left the communicator", rank()))
                               .with_detail("rank", fmt::to_string(rank()));
                         }),
      false);
  interrupt_all();
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
  group_->end_call();
}

void C10dCommunicator::give_up(const Status& cause, bool transport_failed) noexcept {
  group_->give_up({cause, call_, operations_.load(), rank(), transport_failed});
}

void C10dCommunicator::abort(const Status& cause) noexcept {
  if (!is_of_this_process()) return;
  give_up(cause.ok()
              ? without_exceptions("abort", [] { return aborted("the communicator was aborted"); })
              : cause,
          false);
}

Result<WorkPtr> C10dCommunicator::issue(const TensorOperation& own) {
  return issue_or_abort(*this, "issuing a collective", [&]() -> Result<WorkPtr> {
    if (!is_of_this_process()) {
      return failed_precondition(
          fmt::format("{}: the communicator belongs to the process that this one was forked from",
                      operation_title(own)));
    }
    SHW_ASSIGN_OR_RETURN(const uint64_t part_bytes, check_operation(own, rank(), size()));
    if (const auto end = group_->end()) return fail(own, end->cause);
    const auto issued = std::make_shared<Issued>(*group_, own, part_bytes, numbers_++);
    auto work = std::make_unique<C10dWork>(*this, issued);
    try {
      issued->transfer.begin();
    } catch (const std::bad_alloc&) {
      const MutexLock lock(mutex_);
      issued->has_ended = true;
      throw;
    } catch (const std::exception& failure) {
      {
        const MutexLock lock(mutex_);
        issued->has_ended = true;
      }
      return fail(own, failed_transport(operation_title(own), rank(), failure.what()));
    }
    const MutexLock lock(mutex_);
    under_way_.push_back(issued);
    changed_.notify_all();
    return WorkPtr(std::move(work));
  });
}

// ---- the thread ----

void C10dCommunicator::run() noexcept {
  for (;;) {
    IssuedPtr next;
    {
      const MutexLock lock(mutex_);
      while (under_way_.empty() && !stopping_) changed_.wait(mutex_);
      if (under_way_.empty()) return;
      next = under_way_.front();
    }
    const Status outcome = carry_out(*next);
    const MutexLock lock(mutex_);
    next->outcome = outcome;
    next->has_ended = true;
    under_way_.pop_front();
    changed_.notify_all();
  }
}

Status C10dCommunicator::carry_out(Issued& issued) noexcept {
  bool transport_failed = false;
  Status outcome = without_exceptions("a process group", [&]() -> Status {
    try {
      return issued.transfer.wait();
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& failure) {
      transport_failed = true;
      return failed_transport(operation_title(issued.transfer.operation()), rank(), failure.what());
    }
  });
  if (outcome.ok()) {
    ++operations_;
  } else {
    give_up(outcome, transport_failed);
  }
  return outcome;
}

// ---- waiting ----

Result<bool> C10dCommunicator::wait(Issued& issued, steady_clock::time_point until) {
  Status found;
  {
    const MutexLock lock(mutex_);
    while (!issued.has_ended) {
      found = check_still_on(issued);
      const auto now = steady_clock::now();
      if (found.ok() && now >= issued.until) found = too_late(issued);
      if (!found.ok()) break;
      if (now >= until) return false;
      const auto next = std::min({now + group_->slice(), until, issued.until});
      changed_.wait_for(mutex_, std::max<int64_t>(1, nanoseconds(next - now).count()));
    }
    if (found.ok()) found = issued.outcome;
  }
  if (found.ok()) return true;
  return fail(issued.transfer.operation(), found);
}

// Fails with what ended the group, unless the rank that ended it had completed this operation: then
// its bytes come, too.
Status C10dCommunicator::check_still_on(const Issued& issued) {
  const std::optional<GroupEnd> end = group_->end();
  if (!end) return {};
  if (end->operations > issued.transfer.number()) {
    const auto now = steady_clock::now();
    if (!end_seen_) end_seen_ = now;
    if (now - *end_seen_ < kGraceForLastBytes) return {};
  }
  return end->cause;
}

Status C10dCommunicator::too_late(const Issued& issued) const {
  const TensorOperation& own = issued.transfer.operation();
  return deadline_exceeded(fmt::format("rank {}: {} did not end within {:g} s, for want of rank {}",
                                       rank(), operation_title(own),
                                       static_cast<double>(own.call.timeout_ns) / 1e9,
                                       issued.transfer.late_rank()))
      .with_detail("rank", fmt::to_string(issued.transfer.late_rank()))
      .with_detail("unit", fmt::to_string(own.call.unit));
}

// What all ranks call the reason, and what this one was doing.
Status C10dCommunicator::fail(const TensorOperation& own, const Status& status) {
  give_up(status, false);
  const std::optional<GroupEnd> end = group_->wait_for_end();
  Status cause = end ? end->cause : status;
  if (end && end->rank != rank()) {
    cause = std::move(cause).annotated(fmt::format("rank {}: {}", rank(), operation_title(own)));
  }
  return std::move(cause).with_detail("unit", fmt::to_string(own.call.unit));
}

void C10dCommunicator::forget(Issued& issued) noexcept {
  if (!is_of_this_process()) return;
  bool is_given_up = false;
  {
    const MutexLock lock(mutex_);
    is_given_up = !issued.has_ended;
  }
  if (!is_given_up) return;
  give_up(without_exceptions("giving up a collective",
                             [&] {
                               const TensorOperation& own = issued.transfer.operation();
                               return aborted(fmt::format("rank {} gave up {}", rank(),
                                                          operation_title(own)))
                                   .with_detail("rank", fmt::to_string(rank()))
                                   .with_detail("unit", fmt::to_string(own.call.unit));
                             }),
          false);
  interrupt_all();
  const MutexLock lock(mutex_);
  while (!issued.has_ended) changed_.wait(mutex_);
}

// All, because the thread waits for them in their order.
void C10dCommunicator::interrupt_all() noexcept {
  const MutexLock lock(mutex_);
  for (const IssuedPtr& each : under_way_) each->transfer.interrupt();
}

}  // namespace
}  // namespace internal

Result<CommunicatorPtr> make_c10d_communicator(const GroupRequest& request) {
  GroupRequest own = request;
  own.keep = false;
  SHW_ASSIGN_OR_RETURN(auto group, internal::side_group_for(own));
  if (!group->device().is_cpu()) {
    return failed_precondition(
        fmt::format("the process group '{}' has no Gloo, which a communicator of host memory "
                    "needs: name a registered group that has it as \"gloo\"",
                    request.name));
  }
  return without_exceptions("making a communicator", [&]() -> Result<CommunicatorPtr> {
    return CommunicatorPtr(std::make_shared<internal::C10dCommunicator>(std::move(group)));
  });
}

}  // namespace shardwright::collective

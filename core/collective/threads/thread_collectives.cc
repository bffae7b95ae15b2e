// SPDX-License-Identifier: Apache-2.0
//
// Ranks as threads of one process. An operation is one round: each rank lays down what it calls and
// where its memory is, then waits; the last one to come moves all bytes while the others stand
// still, and everybody leaves with the same status. A rank that gives up (time-out, abort, a member
// that was destroyed) ends the group for good first, so that nobody writes into memory that its
// owner no longer watches. Members are used by one thread each; abort is thread-safe.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "core/base/copy_bytes.h"
#include "core/base/without_exceptions.h"
#include "core/collective/collective.h"
#include "core/collective/operation_internal.h"
#include "core/collective/round_collective_internal.h"
#include "core/collective/status_bytes_internal.h"
#include "core/concurrency/cancellation.h"
#include "core/concurrency/mutex.h"

namespace shardwright::collective {
namespace {

using internal::Kind;
using internal::Operation;
using internal::Slot;

class Group {
 public:
  explicit Group(int32_t world_size)
      : slots_(static_cast<size_t>(world_size)),
        operations_(static_cast<size_t>(world_size)),
        gone_(static_cast<size_t>(world_size), false) {}

  Status take_part(size_t rank, const Slot& slot) SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (!failure_.ok()) return failure_;
    const uint64_t round = round_;
    slots_[rank] = slot;
    ++arrived_;
    fail_if_somebody_is_gone();
    if (failure_.ok() && arrived_ == slots_.size()) {
      finish_round();
      return failure_.ok() ? outcome_ : failure_;
    }
    wait_for_round(round, slot.operation.call.timeout_ns);
    const Status result = round_ != round ? outcome_ : failure_;
    return result;
  }

  void abort(const Status& cause) noexcept SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    fail(internal::cause_for_others(cause));
  }

  void leave(size_t rank) noexcept SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    gone_[rank] = true;
    if (arrived_ > 0) fail_if_somebody_is_gone();
  }

 private:
  void fail(Status cause) noexcept SHW_REQUIRES(mutex_) {
    if (failure_.ok()) failure_ = std::move(cause);
    changed_.notify_all();
  }

  void fail_if_somebody_is_gone() noexcept SHW_REQUIRES(mutex_) {
    const auto found = std::find(gone_.begin(), gone_.end(), true);
    if (found == gone_.end()) return;
    fail(without_exceptions("waiting for a rank that has left", [rank = found - gone_.begin()] {
      return aborted(fmt::format("rank {} has left the collective while others wait for it", rank))
          .with_detail("rank", fmt::to_string(rank));
    }));
  }

  // Returns when the round is over or the group has failed.
  void wait_for_round(uint64_t round, int64_t timeout_ns) SHW_REQUIRES(mutex_) {
    const int64_t begin = real_clock().monotonic_ns();
    while (round_ == round && failure_.ok()) {
      if (timeout_ns < 0) {
        changed_.wait(mutex_);
        continue;
      }
      const int64_t left = timeout_ns - (real_clock().monotonic_ns() - begin);
      if (left <= 0) {
        fail(silent_ranks(timeout_ns));
      } else {
        changed_.wait_for(mutex_, left);
      }
    }
  }

  // Without memory for the text the group ends all the same, before a rank leaves what others would
  // write into.
  Status silent_ranks(int64_t timeout_ns) noexcept SHW_REQUIRES(mutex_) {
    try {
      std::string ranks;
      std::string lowest;
      for (size_t rank = 0; rank < slots_.size(); ++rank) {
        if (slots_[rank].has_value()) continue;
        if (lowest.empty()) lowest = fmt::to_string(rank);
        ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
      }
      return deadline_exceeded(fmt::format("rank {} did not take part within {} ms", ranks,
                                           timeout_ns / 1'000'000))
          .with_detail("rank", lowest);
    } catch (...) {
      return failure_of_exception("waiting for other ranks");
    }
  }

  void finish_round() noexcept SHW_REQUIRES(mutex_) {
    try {
      outcome_ = check_round();
      if (outcome_.ok()) outcome_ = move_bytes();
    } catch (...) {
      outcome_ = failure_of_exception("moving bytes between ranks");
    }
    for (std::optional<Slot>& slot : slots_) slot.reset();
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
  }

  // Bad arguments fail the round; ranks out of step fail the group, since nothing after it is
  // sound.
  Status check_round() SHW_REQUIRES(mutex_) {
    for (size_t rank = 0; rank < slots_.size(); ++rank) operations_[rank] = slots_[rank]->operation;
    SHW_RETURN_IF_ERROR(internal::check_arguments(operations_));
    Status in_step = internal::check_in_step(operations_);
    if (!in_step.ok()) fail(in_step);
    SHW_RETURN_IF_ERROR(std::move(in_step));
    return internal::check_parts(operations_);
  }

  // Sender by sender; the out of a slot becomes what is not filled yet.
  void move_pairs() SHW_REQUIRES(mutex_) {
    for (const std::optional<Slot>& from : slots_) {
      std::span<const std::byte> rest = from->in;
      for (size_t to = 0; to < slots_.size(); ++to) {
        const auto bytes = static_cast<size_t>(from->operation.sizes[to]);
        std::span<std::byte>& out = slots_[to]->out;
        out = copy_bytes(rest.first(bytes), out);
        rest = rest.subspan(bytes);
      }
    }
  }

  Status move_bytes() SHW_REQUIRES(mutex_) {
    const Operation& first = slots_[0]->operation;
    if (first.kind == Kind::kGatherV) {
      std::span<std::byte> room = slots_[static_cast<size_t>(first.root)]->out;
      for (const std::optional<Slot>& from : slots_) room = copy_bytes(from->in, room);
    }
    if (first.kind == Kind::kScatterV) {
      std::span<const std::byte> rest = slots_[static_cast<size_t>(first.root)]->in;
      for (const std::optional<Slot>& to : slots_) {
        copy_bytes(rest.first(to->out.size()), to->out);
        rest = rest.subspan(to->out.size());
      }
    }
    if (first.kind == Kind::kBroadcast) {
      const std::span<const std::byte> from = slots_[static_cast<size_t>(first.root)]->out;
      for (const std::optional<Slot>& to : slots_) {
        if (to->out.data() != from.data()) copy_bytes(from, to->out);
      }
    }
    if (first.kind == Kind::kAllGather || first.kind == Kind::kAllGatherV) {
      for (const std::optional<Slot>& to : slots_) {
        std::span<std::byte> room = to->out;
        for (const std::optional<Slot>& from : slots_) room = copy_bytes(from->in, room);
      }
    }
    if (first.kind == Kind::kAllToAllV) move_pairs();
    return first.kind == Kind::kAllReduce ? reduce() : Status();
  }

  // Value by value, without memory; the values of a sum that does not fit stay as they are.
  Status reduce() SHW_REQUIRES(mutex_) {
    const size_t count = slots_[0]->values.size();
    for (size_t i = 0; i < count; ++i) {
      int64_t total = 0;
      if (!reduce(i, &total)) return internal::sum_too_large(i, slots_.size());
    }
    for (size_t i = 0; i < count; ++i) {
      int64_t total = 0;
      reduce(i, &total);
      for (const std::optional<Slot>& slot : slots_) slot->values[i] = total;
    }
    return {};
  }

  // False when it does not fit.
  bool reduce(size_t i, int64_t* total) SHW_REQUIRES(mutex_) {
    const ReduceOperation reduction = slots_[0]->operation.reduction;
    *total = slots_[0]->values[i];
    for (size_t rank = 1; rank < slots_.size(); ++rank) {
      if (!internal::reduce_value(reduction, slots_[rank]->values[i], total)) return false;
    }
    return true;
  }

  Mutex mutex_;
  Condition changed_;
  std::vector<std::optional<Slot>> slots_ SHW_GUARDED_BY(mutex_);
  std::vector<Operation> operations_ SHW_GUARDED_BY(mutex_);  // room to check those of a round
  std::vector<bool> gone_ SHW_GUARDED_BY(mutex_);
  size_t arrived_ SHW_GUARDED_BY(mutex_) = 0;
  uint64_t round_ SHW_GUARDED_BY(mutex_) = 0;
  Status outcome_ SHW_GUARDED_BY(mutex_);  // of the last finished round
  Status failure_ SHW_GUARDED_BY(mutex_);  // the group has ended
};

class ThreadCollective final : public internal::RoundCollective {
 public:
  ThreadCollective(std::shared_ptr<Group> group, int32_t rank, int32_t size)
      : group_(std::move(group)), rank_(rank), size_(size) {}
  ~ThreadCollective() override { group_->leave(static_cast<size_t>(rank_)); }

  int32_t rank() const override { return rank_; }
  int32_t size() const override { return size_; }
  std::string_view name() const override { return "threads"; }
  const void* group() const override { return size_ > 1 ? group_.get() : nullptr; }

  void abort(const Status& cause) noexcept override { group_->abort(cause); }

 private:
  Status take_part(const Slot& slot) override {
    return group_->take_part(static_cast<size_t>(rank_), slot);
  }

  std::shared_ptr<Group> group_;  // co-owned by all members
  int32_t rank_;
  int32_t size_;
};

}  // namespace

std::vector<std::unique_ptr<Collective>> make_thread_collectives(int32_t world_size) {
  std::vector<std::unique_ptr<Collective>> members;
  members.reserve(static_cast<size_t>(std::max(world_size, 0)));
  const auto group = std::make_shared<Group>(world_size);
  for (int32_t rank = 0; rank < world_size; ++rank)
    members.push_back(std::make_unique<ThreadCollective>(group, rank, world_size));
  return members;
}

}  // namespace shardwright::collective

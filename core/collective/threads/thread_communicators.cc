// SPDX-License-Identifier: Apache-2.0
//
// Ranks as threads of one process. The n-th operation that a rank issues belongs to round n. Once
// all ranks have issued it, the bytes are moved by whoever waits, step by step and several at once,
// straight from memory of one rank to that of another: nobody waits for a rank that has issued and
// computes on, and nothing is copied twice. So memory of a rank is touched by threads of others
// until its Work was waited for, and a Work that goes waits for moves under way. A failure ends the
// group for good; a round that all have issued by then may stay unfinished. Members and works are
// used by one thread each at a time; abort is thread-safe.
#include <algorithm>
#include <deque>
#include <utility>

#include <fmt/format.h>

#include "core/base/without_exceptions.h"
#include "core/collective/issue.h"
#include "core/collective/status_bytes_internal.h"
#include "core/collective/threads/thread_moves_internal.h"
#include "core/concurrency/mutex.h"

namespace shardwright::collective {
namespace {

using internal::MoveSizes;

// One operation of all ranks. Guarded by the mutex of the group, but for `ranks` and `sizes` of a
// complete one, which stay as they are.
struct ThreadRound {
  ThreadRound(size_t world, uint64_t number) : index(number), ranks(world) {}
  bool is_complete() const { return arrived == ranks.size(); }
  uint64_t moves_under_way() const { return begun - made; }

  const uint64_t index;
  std::vector<TensorOperation> ranks;
  MoveSizes sizes;
  size_t first = 0;  // the rank that came first
  size_t arrived = 0;
  uint64_t begun = 0;  // of the moves
  uint64_t made = 0;
  bool has_ended = false;
};

// One rank in a round.
struct ThreadPlace {
  std::shared_ptr<ThreadRound> round;  // co-owned by the works of all ranks and the group
  size_t rank = 0;
  CallControl limit;  // of the call
  std::unique_ptr<std::byte[]> scratch;
  size_t scratch_bytes = 0;
};

class ThreadGroup {
 public:
  explicit ThreadGroup(size_t world) : issued_(world, 0), gone_(world, false) {}

  // The place is filled when nothing can fail any more; from then on others touch the memory of the
  // operation.
  Status join(const TensorOperation& own, uint64_t part_bytes, ThreadPlace* place)
      SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    SHW_RETURN_IF_ERROR(failure_);
    const uint64_t index = issued_[place->rank];
    if (index == first_index_ + rounds_.size())
      rounds_.push_back(std::make_shared<ThreadRound>(issued_.size(), index));
    const std::shared_ptr<ThreadRound> round = rounds_[index - first_index_];
    if (round->arrived == 0) {
      round->first = place->rank;
    } else {
      Status same = check_same(round->ranks[round->first], round->first, own, place->rank);
      if (!same.ok()) fail(std::move(same));
    }
    SHW_RETURN_IF_ERROR(failure_);
    round->ranks[place->rank] = own;
    ++issued_[place->rank];
    ++round->arrived;
    if (round->is_complete()) complete(*round, part_bytes);
    fail_if_somebody_is_gone();
    SHW_RETURN_IF_ERROR(failure_);
    place->round = round;
    return {};
  }

  Result<bool> wait(const ThreadPlace& place, int64_t timeout_ns) SHW_EXCLUDES(mutex_) {
    CallControl patience;
    if (timeout_ns >= 0) patience.end_within(real_clock().monotonic_ns(), timeout_ns);
    const MutexLock lock(mutex_);
    ThreadRound& round = *place.round;
    while (!round.has_ended) {
      SHW_RETURN_IF_ERROR(failure_);
      if (make_next_move(place)) continue;
      if (!round.is_complete() && place.limit.remaining_ns() == 0) {
        fail(silent_ranks(place));
      } else if (patience.remaining_ns() == 0) {
        return false;
      } else {
        wait_for_change(patience, round.is_complete() ? CallControl{} : place.limit);
      }
    }
    return true;
  }

  // Afterwards nobody touches the memory of this rank in that round. Waits for no other rank to
  // issue something.
  void give_up(const ThreadPlace& place) noexcept SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    ThreadRound& round = *place.round;
    if (!round.is_complete()) {
      fail(without_exceptions("giving a collective up", [&] {
        return aborted(fmt::format("rank {} gave {} up before all ranks had issued it", place.rank,
                                   operation_title(round.ranks[place.rank])))
            .with_detail("rank", fmt::to_string(place.rank));
      }));
    }
    while (!round.has_ended && failure_.ok()) {
      if (!make_next_move(place)) changed_.wait(mutex_);
    }
    while (round.moves_under_way() > 0) changed_.wait(mutex_);
  }

  void abort(const Status& cause) noexcept SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    fail(internal::cause_for_others(cause));
  }

  void leave(size_t rank) noexcept SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    gone_[rank] = true;
    fail_if_somebody_is_gone();
  }

 private:
  void fail(Status cause) noexcept SHW_REQUIRES(mutex_) {
    if (failure_.ok()) failure_ = std::move(cause);
    changed_.notify_all();
  }

  // The oldest of the rounds that are not.
  void complete(ThreadRound& round, uint64_t part_bytes) noexcept SHW_REQUIRES(mutex_) {
    round.sizes = internal::move_sizes(round.ranks[0], part_bytes, round.ranks.size());
    round.has_ended = round.sizes.count == 0;
    rounds_.pop_front();
    ++first_index_;
    changed_.notify_all();
  }

  // One that has not issued what others have.
  void fail_if_somebody_is_gone() noexcept SHW_REQUIRES(mutex_) {
    for (size_t rank = 0; rank < gone_.size(); ++rank) {
      if (!gone_[rank] || issued_[rank] >= first_index_ + rounds_.size()) continue;
      fail(without_exceptions("waiting for a rank that has left", [rank] {
        return aborted(
                   fmt::format("rank {} has left the communicator while others wait for it", rank))
            .with_detail("rank", fmt::to_string(rank));
      }));
    }
  }

  // False where there is none that this thread could make. Releases the mutex meanwhile.
  bool make_next_move(const ThreadPlace& place) noexcept SHW_REQUIRES(mutex_) {
    ThreadRound& round = *place.round;
    if (!round.is_complete() || round.begun == round.sizes.count) return false;
    const uint64_t move = round.begun++;
    mutex_.unlock();
    Status status = without_exceptions("moving elements between ranks", [&] {
      return make_move(round.ranks, round.sizes, move,
                       std::span(place.scratch.get(), place.scratch_bytes));
    });
    mutex_.lock();
    ++round.made;
    if (!status.ok()) fail(std::move(status));
    if (round.made == round.sizes.count && failure_.ok()) round.has_ended = true;
    if (round.has_ended || !failure_.ok()) changed_.notify_all();
    return true;
  }

  void wait_for_change(const CallControl& patience, const CallControl& limit) SHW_REQUIRES(mutex_) {
    int64_t left_ns = patience.remaining_ns();
    const int64_t limit_ns = limit.remaining_ns();
    if (left_ns < 0 || (limit_ns >= 0 && limit_ns < left_ns)) left_ns = limit_ns;
    if (left_ns < 0) {
      changed_.wait(mutex_);
    } else {
      changed_.wait_for(mutex_, left_ns);
    }
  }

  // Without memory for the text the group ends all the same.
  Status silent_ranks(const ThreadPlace& place) noexcept SHW_REQUIRES(mutex_) {
    const std::span<const uint64_t> issued = issued_;
    return without_exceptions("waiting for other ranks", [&place, issued] {
      std::string ranks;
      std::string lowest;
      for (size_t rank = 0; rank < issued.size(); ++rank) {
        if (issued[rank] > place.round->index) continue;
        if (lowest.empty()) lowest = fmt::to_string(rank);
        ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
      }
      const TensorOperation& own = place.round->ranks[place.rank];
      return deadline_exceeded(fmt::format("{}: rank {} did not take part within {} ms",
                                           operation_title(own), ranks,
                                           own.call.timeout_ns / 1'000'000))
          .with_detail("rank", lowest)
          .with_detail("unit", fmt::to_string(own.call.unit))
          .with_detail("sequence", fmt::to_string(own.call.sequence));
    });
  }

  Mutex mutex_;
  Condition changed_;
  // Those that some rank has issued and not all have, oldest first; the first has that index.
  std::deque<std::shared_ptr<ThreadRound>> rounds_ SHW_GUARDED_BY(mutex_);
  uint64_t first_index_ SHW_GUARDED_BY(mutex_) = 0;
  std::vector<uint64_t> issued_ SHW_GUARDED_BY(mutex_);  // operations of each rank
  std::vector<bool> gone_ SHW_GUARDED_BY(mutex_);
  Status failure_ SHW_GUARDED_BY(mutex_);  // the group has ended
};

class ThreadWork final : public Work {
 public:
  // In no round yet.
  ThreadWork(std::shared_ptr<ThreadGroup> group, int32_t rank, const TensorOperation& own,
             size_t scratch_bytes)
      : memory_(own.call.memory), group_(std::move(group)) {
    place_.rank = static_cast<size_t>(rank);
    place_.scratch_bytes = scratch_bytes;
    if (scratch_bytes > 0)
      place_.scratch = std::make_unique_for_overwrite<std::byte[]>(scratch_bytes);
    if (own.call.timeout_ns >= 0)
      place_.limit.end_within(real_clock().monotonic_ns(), own.call.timeout_ns);
  }
  ~ThreadWork() override {
    if (place_.round != nullptr) group_->give_up(place_);
  }
  ThreadWork(const ThreadWork&) = delete;
  ThreadWork& operator=(const ThreadWork&) = delete;

  Status join(TensorOperation own, uint64_t part_bytes) {
    own.call.memory = nullptr;  // kept here, so that it goes with this rank and no other
    return group_->join(own, part_bytes, &place_);
  }
  Result<bool> wait(int64_t timeout_ns) override { return group_->wait(place_, timeout_ns); }
  Result<bool> test() override { return wait(0); }

 private:
  std::shared_ptr<const void> memory_;  // co-owned with the caller
  std::shared_ptr<ThreadGroup> group_;  // co-owned by all members and works
  ThreadPlace place_;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int32_t rank, int32_t size)
      : group_(std::move(group)), rank_(rank), size_(size) {}
  ~ThreadCommunicator() override { group_->leave(static_cast<size_t>(rank_)); }
  ThreadCommunicator(const ThreadCommunicator&) = delete;
  ThreadCommunicator& operator=(const ThreadCommunicator&) = delete;

  int32_t rank() const override { return rank_; }
  int32_t size() const override { return size_; }
  std::string_view name() const override { return "threads"; }
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
  Result<WorkPtr> reduce_scatter(const CommunicatorCall& call, std::span<const std::byte> in,
                                 std::span<std::byte> out) override {
    return issue({OperationKind::kReduceScatter, call, 0, in, out});
  }
  Result<WorkPtr> all_reduce(const CommunicatorCall& call, std::span<std::byte> data) override {
    return issue({OperationKind::kAllReduce, call, 0, {}, data});
  }
  Result<WorkPtr> broadcast(const CommunicatorCall& call, std::span<std::byte> data,
                            int32_t root) override {
    return issue({OperationKind::kBroadcast, call, root, {}, data});
  }
  Result<WorkPtr> barrier(const CommunicatorCall& call) override {
    return issue({OperationKind::kBarrier, call, 0, {}, {}});
  }
  void abort(const Status& cause) noexcept override { group_->abort(cause); }

 private:
  Result<WorkPtr> issue(const TensorOperation& own) {
    return issue_or_abort(*this, "issuing a collective", [&]() -> Result<WorkPtr> {
      SHW_ASSIGN_OR_RETURN(const uint64_t part_bytes, check_operation(own, rank_, size_));
      const auto world = static_cast<size_t>(size_);
      const MoveSizes sizes = internal::move_sizes(own, part_bytes, world);
      auto work = std::make_unique<ThreadWork>(group_, rank_, own,
                                               static_cast<size_t>(sizes.scratch_bytes));
      SHW_RETURN_IF_ERROR(work->join(own, part_bytes));
      return WorkPtr(std::move(work));
    });
  }

  std::shared_ptr<ThreadGroup> group_;  // co-owned by all members and works
  int32_t rank_;
  int32_t size_;
};

}  // namespace

std::vector<CommunicatorPtr> make_thread_communicators(int32_t world_size) {
  std::vector<CommunicatorPtr> members;
  const auto world = static_cast<size_t>(std::max(world_size, 0));
  members.reserve(world);
  const auto group = std::make_shared<ThreadGroup>(world);
  for (int32_t rank = 0; rank < world_size; ++rank)
    members.push_back(std::make_shared<ThreadCommunicator>(group, rank, world_size));
  return members;
}

}  // namespace shardwright::collective

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

#include "core/base/checked.h"
#include "core/base/without_exceptions.h"
#include "core/collective/collective.h"
#include "core/collective/status_bytes_internal.h"
#include "core/concurrency/cancellation.h"
#include "core/concurrency/mutex.h"

namespace shardwright::collective {
namespace {

enum class Kind {
  kBarrier,
  kBroadcast,
  kAllGather,
  kAllGatherV,
  kGatherV,
  kScatterV,
  kAllToAllV,
  kAllReduce,
};

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::kBarrier:
      return "barrier";
    case Kind::kBroadcast:
      return "broadcast";
    case Kind::kAllGather:
      return "all_gather";
    case Kind::kAllGatherV:
      return "all_gather_v";
    case Kind::kGatherV:
      return "gather_v";
    case Kind::kScatterV:
      return "scatter_v";
    case Kind::kAllToAllV:
      return "all_to_all_v";
    case Kind::kAllReduce:
      return "all_reduce";
  }
  return "unknown";
}

// What one rank lays down for a round; the memory is its caller's and stays until it leaves. Of
// gather_v only the root has out and sizes, of scatter_v only the root has in and sizes; of
// all_to_all_v the sizes are those of in, and out has its own.
struct Slot {
  Kind kind = Kind::kBarrier;
  Call call;
  std::span<const std::byte> in;
  std::span<std::byte> out;
  std::span<const uint64_t> sizes;
  std::span<const uint64_t> out_sizes;
  std::span<int64_t> values;
  ReduceOperation operation = ReduceOperation::kSum;
  int32_t root = 0;
};

Slot make_slot(Kind kind, const Call& call) {
  Slot slot;
  slot.kind = kind;
  slot.call = call;
  return slot;
}

// Text of what must be equal on all ranks.
std::string signature(const Slot& slot) {
  std::string text = fmt::format("{} number {} tag {:#x}", kind_name(slot.kind), slot.call.sequence,
                                 slot.call.tag);
  switch (slot.kind) {
    case Kind::kBarrier:
    case Kind::kAllToAllV:
      break;
    case Kind::kBroadcast:
      text += fmt::format(" of {} bytes from rank {}", slot.out.size(), slot.root);
      break;
    case Kind::kAllGather:
      text += fmt::format(" of {} bytes", slot.in.size());
      break;
    case Kind::kAllGatherV:
      text += fmt::format(" of {} bytes in all", slot.out.size());
      break;
    case Kind::kGatherV:
    case Kind::kScatterV:
      text += fmt::format(" with root {}", slot.root);
      break;
    case Kind::kAllReduce:
      text +=
          fmt::format(" {} of {} values", static_cast<int32_t>(slot.operation), slot.values.size());
      break;
  }
  return text;
}

bool has_root(Kind kind) {
  return kind == Kind::kBroadcast || kind == Kind::kGatherV || kind == Kind::kScatterV;
}

bool is_same_operation(const Slot& a, const Slot& b) {
  if (a.kind != b.kind || a.call.sequence != b.call.sequence || a.call.tag != b.call.tag ||
      a.root != b.root || a.operation != b.operation || a.values.size() != b.values.size()) {
    return false;
  }
  if (a.kind == Kind::kGatherV || a.kind == Kind::kScatterV || a.kind == Kind::kAllToAllV)
    return true;
  return a.out.size() == b.out.size() && std::ranges::equal(a.sizes, b.sizes);
}

Status bad_argument(size_t rank, std::string text) {
  return invalid_argument(fmt::format("rank {}: {}", rank, text))
      .with_detail("rank", fmt::to_string(rank));
}

// Sizes that a rank gives, one per rank, and how much memory it has for all of them.
struct Row {
  std::span<const uint64_t> sizes;
  size_t buffer_bytes = 0;
};

Status check_row(Kind kind, size_t rank, size_t world, const Row& row) {
  const std::string_view name = kind_name(kind);
  if (row.sizes.size() != world) {
    return bad_argument(
        rank, fmt::format("{} with {} sizes for {} ranks", name, row.sizes.size(), world));
  }
  uint64_t total = 0;
  for (const uint64_t size : row.sizes) {
    if (!checked_add(total, size, &total))
      return bad_argument(rank, fmt::format("{} is too large", name));
  }
  if (total == row.buffer_bytes) return {};
  return bad_argument(rank, fmt::format("{} of {} bytes in all with {} bytes of memory", name,
                                        total, row.buffer_bytes));
}

Status wrong_part(const Slot& slot, size_t rank, uint64_t own, uint64_t told) {
  return bad_argument(
      rank, fmt::format("{} has {} bytes where {} were told", kind_name(slot.kind), own, told));
}

// Buffers of this rank against what it says itself.
Status check_slot(const Slot& slot, size_t rank, size_t world) {
  if (has_root(slot.kind) && (slot.root < 0 || std::cmp_greater_equal(slot.root, world))) {
    return bad_argument(
        rank, fmt::format("{} with root {} of {} ranks", kind_name(slot.kind), slot.root, world));
  }
  if (slot.kind == Kind::kAllGather && slot.out.size() != slot.in.size() * world) {
    return bad_argument(rank, fmt::format("all_gather of {} bytes from {} ranks into {} bytes",
                                          slot.in.size(), world, slot.out.size()));
  }
  const bool is_root = std::cmp_equal(slot.root, rank);
  const Row sent{slot.sizes, slot.in.size()};
  const Row received{slot.sizes, slot.out.size()};
  if (slot.kind == Kind::kGatherV && is_root) return check_row(slot.kind, rank, world, received);
  if (slot.kind == Kind::kScatterV && is_root) return check_row(slot.kind, rank, world, sent);
  if (slot.kind == Kind::kAllToAllV) {
    SHW_RETURN_IF_ERROR(check_row(slot.kind, rank, world, sent));
    return check_row(slot.kind, rank, world, {slot.out_sizes, slot.out.size()});
  }
  if (slot.kind != Kind::kAllGatherV) return {};
  SHW_RETURN_IF_ERROR(check_row(slot.kind, rank, world, received));
  if (slot.sizes[rank] == slot.in.size()) return {};
  return wrong_part(slot, rank, slot.in.size(), slot.sizes[rank]);
}

// What this rank gives or takes against what the root says of it.
Status check_part(const Slot& slot, const Slot& root, size_t rank) {
  if (slot.kind != Kind::kGatherV && slot.kind != Kind::kScatterV) return {};
  const uint64_t own = slot.kind == Kind::kGatherV ? slot.in.size() : slot.out.size();
  return own == root.sizes[rank] ? Status() : wrong_part(slot, rank, own, root.sizes[rank]);
}

// What rank `to` expects of rank `from` against what that one sends it.
Status check_pair(const Slot& receiver, size_t to, const Slot& sender, size_t from) {
  const uint64_t expected = receiver.out_sizes[from];
  const uint64_t sent = sender.sizes[to];
  if (expected == sent) return {};
  return bad_argument(to, fmt::format("{} expects {} bytes of rank {}, which sends {}",
                                      kind_name(receiver.kind), expected, from, sent));
}

class Group {
 public:
  explicit Group(int32_t world_size)
      : slots_(static_cast<size_t>(world_size)), gone_(static_cast<size_t>(world_size), false) {}

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
    wait_for_round(round, slot.call.timeout_ns);
    const Status result = round_ != round ? outcome_ : failure_;
    return result;
  }

  void abort(const Status& cause) noexcept SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    fail(without_exceptions("aborting a collective", [&] {
      if (cause.ok()) return aborted("the collective was aborted");
      // An exception of the host belongs to the rank whose callback failed, here as between
      // processes; that rank has its own failure.
      if (cause.detail(internal::kHostException).empty()) return cause;
      return internal::decode_status(internal::encode_status(cause));
    }));
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
    for (size_t rank = 0; rank < slots_.size(); ++rank)
      SHW_RETURN_IF_ERROR(check_slot(*slots_[rank], rank, slots_.size()));
    for (size_t rank = 1; rank < slots_.size(); ++rank) {
      if (is_same_operation(*slots_[0], *slots_[rank])) continue;
      fail(aborted(fmt::format("ranks are out of step: rank 0 calls {}, rank {} calls {}",
                               signature(*slots_[0]), rank, signature(*slots_[rank])))
               .with_detail("rank", fmt::to_string(rank))
               .with_detail("expected", signature(*slots_[0]))
               .with_detail("found", signature(*slots_[rank]))
               .with_detail("sequence", fmt::to_string(slots_[rank]->call.sequence))
               .with_detail("tag", fmt::to_string(slots_[rank]->call.tag)));
      return failure_;
    }
    if (slots_[0]->kind == Kind::kAllToAllV) return check_pairs();
    if (!has_root(slots_[0]->kind)) return {};
    const Slot& root = *slots_[static_cast<size_t>(slots_[0]->root)];
    for (size_t rank = 0; rank < slots_.size(); ++rank)
      SHW_RETURN_IF_ERROR(check_part(*slots_[rank], root, rank));
    return {};
  }

  Status check_pairs() SHW_REQUIRES(mutex_) {
    for (size_t to = 0; to < slots_.size(); ++to) {
      for (size_t from = 0; from < slots_.size(); ++from)
        SHW_RETURN_IF_ERROR(check_pair(*slots_[to], to, *slots_[from], from));
    }
    return {};
  }

  // Sender by sender; the out of a slot becomes what is not filled yet.
  void move_pairs() SHW_REQUIRES(mutex_) {
    for (const std::optional<Slot>& from : slots_) {
      std::span<const std::byte> rest = from->in;
      for (size_t to = 0; to < slots_.size(); ++to) {
        const auto bytes = static_cast<size_t>(from->sizes[to]);
        std::span<std::byte>& out = slots_[to]->out;
        std::ranges::copy(rest.first(bytes), out.begin());
        rest = rest.subspan(bytes);
        out = out.subspan(bytes);
      }
    }
  }

  Status move_bytes() SHW_REQUIRES(mutex_) {
    const Slot& first = *slots_[0];
    if (first.kind == Kind::kGatherV) {
      auto at = slots_[static_cast<size_t>(first.root)]->out.begin();
      for (const std::optional<Slot>& from : slots_) at = std::ranges::copy(from->in, at).out;
    }
    if (first.kind == Kind::kScatterV) {
      std::span<const std::byte> rest = slots_[static_cast<size_t>(first.root)]->in;
      for (const std::optional<Slot>& to : slots_) {
        std::ranges::copy(rest.first(to->out.size()), to->out.begin());
        rest = rest.subspan(to->out.size());
      }
    }
    if (first.kind == Kind::kBroadcast) {
      const std::span<const std::byte> from = slots_[static_cast<size_t>(first.root)]->out;
      for (const std::optional<Slot>& to : slots_) {
        if (to->out.data() != from.data()) std::ranges::copy(from, to->out.begin());
      }
    }
    if (first.kind == Kind::kAllGather || first.kind == Kind::kAllGatherV) {
      for (const std::optional<Slot>& to : slots_) {
        auto at = to->out.begin();
        for (const std::optional<Slot>& from : slots_) at = std::ranges::copy(from->in, at).out;
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
      if (reduce(i, &total)) continue;
      return out_of_range(
          fmt::format("the sum of value {} over {} ranks does not fit 64 bits", i, slots_.size()));
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
    *total = slots_[0]->values[i];
    for (size_t rank = 1; rank < slots_.size(); ++rank) {
      const int64_t value = slots_[rank]->values[i];
      if (slots_[0]->operation == ReduceOperation::kMin) {
        *total = std::min(*total, value);
      } else if (slots_[0]->operation == ReduceOperation::kMax) {
        *total = std::max(*total, value);
      } else if (!checked_add(*total, value, total)) {
        return false;
      }
    }
    return true;
  }

  Mutex mutex_;
  Condition changed_;
  std::vector<std::optional<Slot>> slots_ SHW_GUARDED_BY(mutex_);
  std::vector<bool> gone_ SHW_GUARDED_BY(mutex_);
  size_t arrived_ SHW_GUARDED_BY(mutex_) = 0;
  uint64_t round_ SHW_GUARDED_BY(mutex_) = 0;
  Status outcome_ SHW_GUARDED_BY(mutex_);  // of the last finished round
  Status failure_ SHW_GUARDED_BY(mutex_);  // the group has ended
};

class ThreadCollective final : public Collective {
 public:
  ThreadCollective(std::shared_ptr<Group> group, int32_t rank, int32_t size)
      : group_(std::move(group)), rank_(rank), size_(size) {}
  ~ThreadCollective() override { group_->leave(static_cast<size_t>(rank_)); }

  int32_t rank() const override { return rank_; }
  int32_t size() const override { return size_; }
  std::string_view name() const override { return "threads"; }
  const void* group() const override { return size_ > 1 ? group_.get() : nullptr; }

  Status barrier(const Call& call) override { return take_part(make_slot(Kind::kBarrier, call)); }
  Status broadcast(const Call& call, std::span<std::byte> data, int32_t root) override {
    Slot slot = make_slot(Kind::kBroadcast, call);
    slot.out = data;
    slot.root = root;
    return take_part(slot);
  }
  Status all_gather(const Call& call, std::span<const std::byte> in,
                    std::span<std::byte> out) override {
    Slot slot = make_slot(Kind::kAllGather, call);
    slot.in = in;
    slot.out = out;
    return take_part(slot);
  }
  Status all_gather_v(const Call& call, std::span<const std::byte> in, std::span<std::byte> out,
                      std::span<const uint64_t> sizes) override {
    Slot slot = make_slot(Kind::kAllGatherV, call);
    slot.in = in;
    slot.out = out;
    slot.sizes = sizes;
    return take_part(slot);
  }
  bool has_gather_v() const override { return true; }
  Status gather_v(const Call& call, std::span<const std::byte> in, std::span<std::byte> out,
                  std::span<const uint64_t> sizes, int32_t root) override {
    Slot slot = make_slot(Kind::kGatherV, call);
    slot.in = in;
    slot.out = out;
    slot.sizes = sizes;
    slot.root = root;
    return take_part(slot);
  }
  bool has_scatter_v() const override { return true; }
  Status scatter_v(const Call& call, std::span<const std::byte> in, std::span<const uint64_t> sizes,
                   std::span<std::byte> out, int32_t root) override {
    Slot slot = make_slot(Kind::kScatterV, call);
    slot.in = in;
    slot.out = out;
    slot.sizes = sizes;
    slot.root = root;
    return take_part(slot);
  }
  bool has_all_to_all_v() const override { return true; }
  Status all_to_all_v(const Call& call, std::span<const std::byte> in,
                      std::span<const uint64_t> in_sizes, std::span<std::byte> out,
                      std::span<const uint64_t> out_sizes) override {
    Slot slot = make_slot(Kind::kAllToAllV, call);
    slot.in = in;
    slot.sizes = in_sizes;
    slot.out = out;
    slot.out_sizes = out_sizes;
    return take_part(slot);
  }
  Status all_reduce_i64(const Call& call, std::span<int64_t> values,
                        ReduceOperation operation) override {
    Slot slot = make_slot(Kind::kAllReduce, call);
    slot.values = values;
    slot.operation = operation;
    return take_part(slot);
  }
  void abort(const Status& cause) noexcept override { group_->abort(cause); }

 private:
  Status take_part(const Slot& slot) { return group_->take_part(static_cast<size_t>(rank_), slot); }

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

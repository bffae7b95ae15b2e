// SPDX-License-Identifier: Apache-2.0
//
// Each operation is a GroupOperation (group_operation_internal.h) that begins with an opening.
// Arguments that make no sense on one rank are refused on all and leave the group as it is; any
// other failure gives the side group up. A group that was given up in an earlier call of another
// rank is replaced before this call has done anything.
#include "core/collective/c10d/c10d_collective.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/copy_bytes.h"
#include "core/base/without_exceptions.h"
#include "core/collective/c10d/group_operation_internal.h"
#include "core/collective/c10d/process_groups_internal.h"
#include "core/concurrency/mutex.h"

namespace shardwright::collective {
namespace internal {
namespace {

constexpr int kMostRenewals = 8;  // of the side group for one operation
// Of all_gather_v, whose parts are padded to the largest: the memory for all in that of the parts.
constexpr size_t kMostPadding = 2;

uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0xD6E8FEB86659FD93U;
  return hash ^ (hash >> 32U);
}

// Equal on ranks that call the same with equal numbers.
uint64_t signature_of(Kind kind, const Call& call, std::initializer_list<uint64_t> numbers) {
  uint64_t hash = mixed(0x5368617264777231U, static_cast<uint64_t>(kind));
  hash = mixed(mixed(hash, call.sequence), call.tag);
  for (const uint64_t number : numbers) hash = mixed(hash, number);
  return hash;
}

// The bytes of a payload.
std::span<std::byte> bytes_in(Payload* payload) {
  return std::as_writable_bytes(std::span(*payload));
}

Status wrong(Kind kind, const std::string& text) {
  return invalid_argument(fmt::format("{} {}", kind_name(kind), text));
}

std::vector<int64_t> splits_of(std::span<const uint64_t> sizes) {
  return {sizes.begin(), sizes.end()};
}

void fill(std::span<std::byte> out, const at::Tensor& bytes, size_t from = 0) {
  if (out.empty()) return;
  std::memcpy(out.data(), static_cast<const std::byte*>(bytes.data_ptr()) + from, out.size());
}

// Sizes of all ranks, by which two that are swapped show.
uint64_t weighted(std::span<const uint64_t> sizes) {
  uint64_t total = 0;
  for (size_t rank = 0; rank < sizes.size(); ++rank) total += sizes[rank] * weight_of(rank);
  return total;
}

// Parts of all ranks, back to back, that are sent or received.
struct Parts {
  std::span<const std::byte> in{};
  std::span<std::byte> out{};
  std::span<const uint64_t> sizes{};
};

// A call over a side group.
struct Seat {
  std::shared_ptr<SideGroup> group;  // co-owned by the list of those that are kept
  uint64_t call = 0;
};

class C10dCollective : public Collective {
 public:
  C10dCollective(GroupRequest request, const std::shared_ptr<SideGroup>& group)
      : request_(std::move(request)), rank_(group->rank()), size_(group->size()) {
    const uint64_t call = group->begin_call();
    const MutexLock lock(mutex_);
    seat_ = {group, call};
  }
  ~C10dCollective() override {
    if (is_of_this_process()) seat().group->end_call();
  }

  int32_t rank() const override { return rank_; }
  int32_t size() const override { return size_; }
  std::string_view name() const override { return "c10d"; }
  bool has_gather_v() const override { return true; }
  bool has_scatter_v() const override { return true; }
  bool has_all_to_all_v() const override { return true; }

  Status barrier(const Call& call) override;
  Status broadcast(const Call& call, std::span<std::byte> data, int32_t root) override;
  Status all_gather(const Call& call, std::span<const std::byte> in,
                    std::span<std::byte> out) override;
  Status all_gather_v(const Call& call, std::span<const std::byte> in, std::span<std::byte> out,
                      std::span<const uint64_t> sizes) override;
  Status gather_v(const Call& call, std::span<const std::byte> in, std::span<std::byte> out,
                  std::span<const uint64_t> sizes, int32_t root) override;
  Status scatter_v(const Call& call, std::span<const std::byte> in, std::span<const uint64_t> sizes,
                   std::span<std::byte> out, int32_t root) override;
  Status all_to_all_v(const Call& call, std::span<const std::byte> in,
                      std::span<const uint64_t> in_sizes, std::span<std::byte> out,
                      std::span<const uint64_t> out_sizes) override;
  Status all_reduce_i64(const Call& call, std::span<int64_t> values,
                        ReduceOperation operation) override;
  void abort(const Status& cause) noexcept override;

 private:
  template <typename Body>
  Status run(Kind kind, const Call& call, const Body& body) noexcept;
  template <typename Body>
  Status attempt(const Wanted& wanted, const Body& body, bool* is_missed) noexcept;
  Status begin(const Wanted& wanted, bool* is_missed) noexcept;
  Status ended(const Status& status, const GroupOperation& operation, bool* is_missed) noexcept;
  bool missed(const std::optional<GroupEnd>& end) const;
  Status refuse_the_end(Kind kind, const GroupEnd& end);
  Status renew() noexcept;
  Status missed_too_many(Kind kind) const;
  Seat seat() const SHW_EXCLUDES(mutex_);
  // A fork inherits no thread that could let go of a lock, so this is asked before one is taken.
  bool is_of_this_process() const { return getpid() == process_; }
  Wanted wanted(Kind kind, const Call& call) const;
  GroupEnd end_by(const Status& cause, uint64_t call, bool transport_failed) const;
  Status check(const Operation& own) const;
  Status check_part(const Opened& opened, Kind kind, int32_t root, GroupOperation* operation);
  Status tell_each(GroupOperation* operation, const Parts& parts);
  Status exchange(GroupOperation* operation, const Parts& sent, const Parts& received);
  Status name_wrong_pair(GroupOperation* operation, std::span<const uint64_t> in_sizes,
                         std::span<const uint64_t> out_sizes);
  size_t world() const { return static_cast<size_t>(size()); }
  size_t here() const { return static_cast<size_t>(rank()); }

  const GroupRequest request_;
  const int32_t rank_;
  const int32_t size_;
  const pid_t process_ = getpid();
  mutable Mutex mutex_;  // abort comes from other threads
  Seat seat_ SHW_GUARDED_BY(mutex_);
  std::optional<Status> aborted_ SHW_GUARDED_BY(mutex_);  // the first cause
  std::atomic<uint64_t> operations_ = 0;  // completed; abort reads it from other threads
  bool has_told_the_end_ = false;
};

// ---- what every operation goes through ----

Wanted C10dCollective::wanted(Kind kind, const Call& call) const {
  const auto longest = std::chrono::milliseconds(request_.limit_ms);
  std::chrono::nanoseconds limit = longest;
  if (call.timeout_ns >= 0) limit = std::min(limit, std::chrono::nanoseconds(call.timeout_ns));
  return {kind, call.sequence, limit, seat().call, operations_.load()};
}

GroupEnd C10dCollective::end_by(const Status& cause, uint64_t call, bool transport_failed) const {
  return {cause, call, operations_.load(), rank(), transport_failed};
}

Seat C10dCollective::seat() const {
  const MutexLock lock(mutex_);
  return seat_;
}

template <typename Body>
Status C10dCollective::run(Kind kind, const Call& call, const Body& body) noexcept {
  for (int renewals = 0; renewals < kMostRenewals; ++renewals) {
    bool is_missed = false;
    Status status = attempt(wanted(kind, call), body, &is_missed);
    if (!is_missed) return status;
    // Another rank gave the group up before this call began, and is or will be in this call over a
    // new one.
    SHW_RETURN_IF_ERROR(renew());
  }
  return without_exceptions("a process group", [&] { return missed_too_many(kind); });
}

Status C10dCollective::missed_too_many(Kind kind) const {
  return unavailable(fmt::format("rank {}: {} cannot run, other ranks gave {} groups up in a row "
                                 "before it began; begin the save or load anew on all ranks",
                                 rank(), kind_name(kind), kMostRenewals))
      .with_detail("rank", fmt::to_string(rank()));
}

template <typename Body>
Status C10dCollective::attempt(const Wanted& wanted, const Body& body, bool* is_missed) noexcept {
  Status refused = begin(wanted, is_missed);
  if (!refused.ok() || *is_missed) return refused;
  const std::shared_ptr<SideGroup> group = seat().group;
  GroupOperation operation(*group, wanted);
  Status status;
  try {
    status = body(operation);
  } catch (const std::bad_alloc&) {
    status = out_of_memory();
  } catch (const std::exception& failure) {
    status = without_exceptions("a process group",
                                [&] { return operation.transport_failure(failure.what()); });
  }
  if (status.ok()) ++operations_;
  if (status.ok() || operation.all_ranks_know()) return status;
  return ended(status, operation, is_missed);
}

Status C10dCollective::begin(const Wanted& wanted, bool* is_missed) noexcept {
  if (!is_of_this_process()) {
    return without_exceptions("after a fork", [&] {
      return failed_precondition(
          fmt::format("{}: the collective belongs to the process that this one was forked from",
                      kind_name(wanted.kind)));
    });
  }
  const std::shared_ptr<SideGroup> group = seat().group;
  if (!group->end()) return {};
  const std::optional<GroupEnd> end = group->wait_for_end();
  *is_missed = missed(end);
  return *is_missed ? Status() : refuse_the_end(wanted.kind, *end);
}

Status C10dCollective::ended(const Status& status, const GroupOperation& operation,
                             bool* is_missed) noexcept {
  const auto [group, call] = seat();
  group->give_up(end_by(status, call, operation.transport_failed()));
  const std::optional<GroupEnd> end = group->wait_for_end();
  *is_missed = missed(end);
  has_told_the_end_ = !*is_missed;
  return end ? end->cause : status;
}

bool C10dCollective::missed(const std::optional<GroupEnd>& end) const {
  return end && end->call < seat().call && operations_ == 0;
}

// What ended the group is said once; after that, that it has ended.
Status C10dCollective::refuse_the_end(Kind kind, const GroupEnd& end) {
  if (!std::exchange(has_told_the_end_, true)) return end.cause;
  return without_exceptions("a process group", [&] {
    return unavailable(fmt::format("rank {}: {} cannot run, the group was given up after: {}; "
                                   "begin the save or load anew on all ranks, which makes a new "
                                   "group",
                                   rank(), kind_name(kind), end.cause.message()))
        .with_detail("rank", fmt::to_string(rank()));
  });
}

// An abort that came too late for the group before, or while there was none, counts for this one.
Status C10dCollective::renew() noexcept {
  return without_exceptions("a process group", [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(auto group, side_group_for(request_));
    Seat seat{group, group->begin_call()};
    {
      const MutexLock lock(mutex_);
      std::swap(seat, seat_);
      if (aborted_) seat_.group->give_up(end_by(*aborted_, seat_.call, false));
    }
    seat.group->end_call();
    return {};
  });
}

void C10dCollective::abort(const Status& cause) noexcept {
  if (!is_of_this_process()) return;
  Status given = cause;
  if (given.ok())
    given = without_exceptions("abort", [] { return aborted("the collective was aborted"); });
  const MutexLock lock(mutex_);
  if (!aborted_) aborted_ = given;
  seat_.group->give_up(end_by(given, seat_.call, false));
}

Status C10dCollective::check(const Operation& own) const {
  return check_own(own, here(), world());
}

// ---- the operations ----

Status C10dCollective::barrier(const Call& call) {
  return run(Kind::kBarrier, call, [&](GroupOperation& operation) -> Status {
    Opening opening;
    opening.signature = signature_of(Kind::kBarrier, call, {});
    return operation.open(opening).status();
  });
}

Status C10dCollective::broadcast(const Call& call, std::span<std::byte> data, int32_t root) {
  return run(Kind::kBroadcast, call, [&](GroupOperation& operation) -> Status {
    Opening opening;
    opening.signature =
        signature_of(Kind::kBroadcast, call, {data.size(), static_cast<uint64_t>(root)});
    opening.problem =
        check({.kind = Kind::kBroadcast, .call = call, .root = root, .out_bytes = data.size()});
    const bool is_small = data.size() <= kPayloadBytes;
    if (is_small && rank() == root) copy_bytes(data, bytes_in(&opening.payload));
    SHW_ASSIGN_OR_RETURN(Opened opened, operation.open(opening));
    if (is_small) {
      copy_bytes(bytes_in(&opened.payload).first(data.size()), data);
      return {};
    }
    at::Tensor carried = bytes_of(data);
    SHW_RETURN_IF_ERROR(operation.broadcast(carried, root));
    if (rank() != root) fill(data, carried);
    return {};
  });
}

Status C10dCollective::all_gather(const Call& call, std::span<const std::byte> in,
                                  std::span<std::byte> out) {
  return run(Kind::kAllGather, call, [&](GroupOperation& operation) -> Status {
    Opening opening;
    opening.signature = signature_of(Kind::kAllGather, call, {in.size()});
    opening.problem = check(
        {.kind = Kind::kAllGather, .call = call, .in_bytes = in.size(), .out_bytes = out.size()});
    const bool is_small = in.size() <= kPayloadBytes / world();
    if (is_small) copy_bytes(in, bytes_in(&opening.payload).subspan(here() * in.size()));
    SHW_ASSIGN_OR_RETURN(Opened opened, operation.open(opening));
    if (is_small) {
      copy_bytes(bytes_in(&opened.payload).first(out.size()), out);
      return {};
    }
    SHW_ASSIGN_OR_RETURN(const at::Tensor all, operation.gather(bytes_of(in)));
    fill(out, all);
    return {};
  });
}

Status C10dCollective::all_gather_v(const Call& call, std::span<const std::byte> in,
                                    std::span<std::byte> out, std::span<const uint64_t> sizes) {
  return run(Kind::kAllGatherV, call, [&](GroupOperation& operation) -> Status {
    Opening opening;
    opening.signature = signature_of(Kind::kAllGatherV, call, {});
    for (const uint64_t size : sizes) opening.signature = mixed(opening.signature, size);
    opening.problem = check({.kind = Kind::kAllGatherV,
                             .call = call,
                             .in_bytes = in.size(),
                             .out_bytes = out.size(),
                             .sizes = sizes});
    const bool is_small = out.size() <= kPayloadBytes && opening.problem.ok();
    if (is_small) {
      const auto begin = static_cast<size_t>(sum_before(sizes, here()));
      copy_bytes(in, bytes_in(&opening.payload).subspan(begin));
    }
    SHW_ASSIGN_OR_RETURN(Opened opened, operation.open(opening));
    if (is_small) {
      copy_bytes(bytes_in(&opened.payload).first(out.size()), out);
      return {};
    }
    const auto largest = static_cast<size_t>(std::ranges::max(sizes));
    if (largest > kMostPadding * (out.size() / world() + 1))
      return tell_each(&operation, {.in = in, .out = out, .sizes = sizes});
    at::Tensor padded = at::zeros({static_cast<int64_t>(largest)}, at::kByte);
    if (!in.empty()) std::memcpy(padded.data_ptr(), in.data(), in.size());
    SHW_ASSIGN_OR_RETURN(const at::Tensor all, operation.gather(padded));
    for (size_t rank = 0; rank < world(); ++rank) {
      const auto bytes = static_cast<size_t>(sizes[rank]);
      fill(out.first(bytes), all, rank * largest);
      out = out.subspan(bytes);
    }
    return {};
  });
}

// The part of each rank to all, one rank after the other: no room for more than the largest.
Status C10dCollective::tell_each(GroupOperation* operation, const Parts& parts) {
  std::span<std::byte> out = parts.out;
  for (size_t rank = 0; rank < world(); ++rank) {
    const auto bytes = static_cast<size_t>(parts.sizes[rank]);
    if (bytes == 0) continue;
    at::Tensor carried =
        rank == here() ? bytes_of(parts.in) : at::empty({static_cast<int64_t>(bytes)}, at::kByte);
    SHW_RETURN_IF_ERROR(operation->broadcast(carried, static_cast<int32_t>(rank)));
    fill(out.first(bytes), carried);
    out = out.subspan(bytes);
  }
  return {};
}

// The sizes that the root gives against those of the ranks.
Status C10dCollective::check_part(const Opened& opened, Kind kind, int32_t root,
                                  GroupOperation* operation) {
  if (opened.fits) return {};
  return operation->known_to_all(
      wrong(kind, fmt::format("has sizes from rank {} that are not those of the ranks", root))
          .with_detail("rank", fmt::to_string(root)));
}

// What this rank has for each other, and what each has for it, in one movement.
Status C10dCollective::exchange(GroupOperation* operation, const Parts& sent,
                                const Parts& received) {
  SHW_ASSIGN_OR_RETURN(
      const at::Tensor came,
      operation->exchange(bytes_of(sent.in), splits_of(sent.sizes), splits_of(received.sizes)));
  fill(received.out, came);
  return {};
}

Status C10dCollective::gather_v(const Call& call, std::span<const std::byte> in,
                                std::span<std::byte> out, std::span<const uint64_t> sizes,
                                int32_t root) {
  return run(Kind::kGatherV, call, [&](GroupOperation& operation) -> Status {
    const bool is_root = rank() == root;
    Opening opening;
    opening.signature = signature_of(Kind::kGatherV, call, {static_cast<uint64_t>(root)});
    opening.problem = check({.kind = Kind::kGatherV,
                             .call = call,
                             .root = root,
                             .in_bytes = in.size(),
                             .out_bytes = out.size(),
                             .sizes = sizes});
    opening.apart = in.size() * weight_of(here());
    if (is_root) opening.apart -= weighted(sizes);
    SHW_ASSIGN_OR_RETURN(const Opened opened, operation.open(opening));
    SHW_RETURN_IF_ERROR(check_part(opened, Kind::kGatherV, root, &operation));
    std::vector<uint64_t> own(world());
    own[static_cast<size_t>(root)] = in.size();
    const std::vector<uint64_t> none(world());
    return exchange(&operation, {.in = in, .sizes = own},
                    {.out = out, .sizes = is_root ? sizes : none});
  });
}

Status C10dCollective::scatter_v(const Call& call, std::span<const std::byte> in,
                                 std::span<const uint64_t> sizes, std::span<std::byte> out,
                                 int32_t root) {
  return run(Kind::kScatterV, call, [&](GroupOperation& operation) -> Status {
    const bool is_root = rank() == root;
    Opening opening;
    opening.signature = signature_of(Kind::kScatterV, call, {static_cast<uint64_t>(root)});
    opening.problem = check({.kind = Kind::kScatterV,
                             .call = call,
                             .root = root,
                             .in_bytes = in.size(),
                             .out_bytes = out.size(),
                             .sizes = sizes});
    opening.apart = out.size() * weight_of(here());
    if (is_root) opening.apart -= weighted(sizes);
    SHW_ASSIGN_OR_RETURN(const Opened opened, operation.open(opening));
    SHW_RETURN_IF_ERROR(check_part(opened, Kind::kScatterV, root, &operation));
    std::vector<uint64_t> own(world());
    own[static_cast<size_t>(root)] = out.size();
    const std::vector<uint64_t> none(world());
    const auto parts = is_root ? in : std::span<const std::byte>();
    return exchange(&operation, {.in = parts, .sizes = is_root ? sizes : none},
                    {.out = out, .sizes = own});
  });
}

Status C10dCollective::all_to_all_v(const Call& call, std::span<const std::byte> in,
                                    std::span<const uint64_t> in_sizes, std::span<std::byte> out,
                                    std::span<const uint64_t> out_sizes) {
  return run(Kind::kAllToAllV, call, [&](GroupOperation& operation) -> Status {
    Opening opening;
    opening.signature = signature_of(Kind::kAllToAllV, call, {});
    opening.problem = check({.kind = Kind::kAllToAllV,
                             .call = call,
                             .in_bytes = in.size(),
                             .out_bytes = out.size(),
                             .sizes = in_sizes,
                             .out_sizes = out_sizes});
    for (size_t to = 0; to < in_sizes.size(); ++to)
      opening.apart += in_sizes[to] * weight_of(here() * world() + to);
    for (size_t from = 0; from < out_sizes.size(); ++from)
      opening.apart -= out_sizes[from] * weight_of(from * world() + here());
    SHW_ASSIGN_OR_RETURN(const Opened opened, operation.open(opening));
    if (!opened.fits) return name_wrong_pair(&operation, in_sizes, out_sizes);
    return exchange(&operation, {.in = in, .sizes = in_sizes}, {.out = out, .sizes = out_sizes});
  });
}

// Compares the rows of all ranks; the lowest rank that expects other bytes is named on all.
Status C10dCollective::name_wrong_pair(GroupOperation* operation,
                                       std::span<const uint64_t> in_sizes,
                                       std::span<const uint64_t> out_sizes) {
  SHW_ASSIGN_OR_RETURN(const at::Tensor rows, operation->gather(numbers_of(splits_of(in_sizes))));
  const auto* sent = rows.data_ptr<int64_t>();
  size_t from = 0;
  while (from < world() && sent[from * world() + here()] == static_cast<int64_t>(out_sizes[from]))
    ++from;
  const int64_t own = from == world() ? size() : rank();
  at::Tensor lowest = numbers_of(std::span(&own, 1));
  SHW_RETURN_IF_ERROR(operation->reduce(lowest, ReduceOperation::kMin));
  const int64_t to = *lowest.data_ptr<int64_t>();
  const std::array<int64_t, 2> said{static_cast<int64_t>(from),
                                    from == world() ? 0 : static_cast<int64_t>(out_sizes[from])};
  at::Tensor told = numbers_of(said);
  if (to >= size())
    return internal_error("sizes of all_to_all_v that fit were taken for some that do not");
  SHW_RETURN_IF_ERROR(operation->broadcast(told, static_cast<int32_t>(to)));
  const int64_t sender = told.data_ptr<int64_t>()[0];
  return operation->known_to_all(
      invalid_argument(fmt::format("rank {} expects {} bytes of rank {}, which sends {}", to,
                                   told.data_ptr<int64_t>()[1], sender, sent[sender * size() + to]))
          .with_detail("rank", fmt::to_string(to)));
}

// ---- reductions ----

// Values as halves, whose sums do not wrap for fewer than 2^31 ranks.
void split_in_halves(std::span<const int64_t> values, std::span<int64_t> halves) {
  for (size_t i = 0; i < values.size(); ++i) {
    halves[i] = values[i] >> 32;
    halves[values.size() + i] = values[i] & 0xFFFFFFFF;
  }
}

Status join_halves(std::span<const int64_t> halves, std::span<int64_t> values) {
  for (const bool fills : {false, true}) {
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t low = halves[values.size() + i];
      const int64_t high = halves[i] + (low >> 32);
      if (high != static_cast<int32_t>(high)) {
        return out_of_range(
            fmt::format("the sum of value {} over the ranks does not fit 64 bits", i));
      }
      if (fills)
        values[i] = static_cast<int64_t>(static_cast<uint64_t>(high) << 32U) | (low & 0xFFFFFFFF);
    }
  }
  return {};
}

Status C10dCollective::all_reduce_i64(const Call& call, std::span<int64_t> values,
                                      ReduceOperation operation_kind) {
  return run(Kind::kAllReduce, call, [&](GroupOperation& operation) -> Status {
    const bool sums = operation_kind == ReduceOperation::kSum;
    const size_t count = sums ? 2 * values.size() : values.size();
    std::vector<int64_t> numbers(values.begin(), values.end());
    if (sums) {
      numbers.resize(count);
      split_in_halves(values, numbers);
    }
    Opening opening;
    opening.signature = signature_of(Kind::kAllReduce, call,
                                     {values.size(), static_cast<uint64_t>(operation_kind)});
    opening.reduction = operation_kind;
    const bool is_small = count <= kPayloadLanes;
    if (is_small) std::ranges::copy(numbers, opening.payload.begin());
    SHW_ASSIGN_OR_RETURN(const Opened opened, operation.open(opening));
    std::span<const int64_t> reduced(opened.payload.data(), is_small ? count : 0);
    at::Tensor tensor;
    if (!is_small) {
      tensor = numbers_of(numbers);
      SHW_RETURN_IF_ERROR(operation.reduce(tensor, operation_kind));
      reduced = std::span(tensor.data_ptr<int64_t>(), count);
    }
    if (!sums) {
      std::ranges::copy(reduced, values.begin());
      return {};
    }
    Status fits = join_halves(reduced, values);
    return fits.ok() ? fits : operation.known_to_all(std::move(fits));
  });
}

}  // namespace
}  // namespace internal

Result<std::unique_ptr<Collective>> make_c10d_collective(const GroupRequest& request) {
  SHW_ASSIGN_OR_RETURN(auto group, internal::side_group_for(request));
  return std::unique_ptr<Collective>(
      std::make_unique<internal::C10dCollective>(request, std::move(group)));
}

}  // namespace shardwright::collective

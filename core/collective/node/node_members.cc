// SPDX-License-Identifier: Apache-2.0
#include "core/collective/node/node_members_internal.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/without_exceptions.h"
#include "core/collective/status_bytes_internal.h"
#include "core/concurrency/cancellation.h"

namespace shardwright::collective::internal {
namespace {

constexpr uint32_t kLayoutVersion = 0x10001;  // of what processes share: others are no neighbours
constexpr int64_t kSliceNs = 20'000'000;      // between two looks whether processes are there
constexpr uint64_t kLine = 64;  // of a processor's cache: what changes apart lies apart
enum State : uint32_t { kNothing = 0, kUnable = 1, kJoined = 2 };

int64_t now_ns() {
  return real_clock().monotonic_ns();
}

}  // namespace

int64_t end_of(int64_t timeout_ns) {
  int64_t end_ns = 0;
  return timeout_ns < 0 || !checked_add(now_ns(), timeout_ns, &end_ns) ? -1 : end_ns;
}

// The words of a rank. `changes` is that of the first rank for all: who waits sleeps on it.
struct NodeMembers::Head {
  alignas(kLine) node::SharedWord changes = 0;
  alignas(kLine) node::SharedWord published = 0;
  node::SharedWord state = kNothing;
  node::SharedWord left = 0;
  node::SharedWord stopped = 0;  // bytes of the cause, which lie here before
  std::array<std::byte, kBriefStatusBytes> cause{};
  Digest128 mark{};
};

struct NodeMembers::Box {
  uint32_t kind = 0;
  uint32_t tag = 0;
  uint64_t sequence = 0;
  int32_t reduction = 0;
  int32_t root = 0;
  uint64_t in_bytes = 0;
  uint64_t out_bytes = 0;
  uint64_t value_count = 0;
  uint32_t size_count = 0;
  uint32_t out_size_count = 0;
  std::array<uint64_t, kMost> sizes{};
  std::array<uint64_t, kMost> out_sizes{};
};

// What a rank brings to the meeting; all zero when it has no memory for others.
struct NodeMembers::Offer {
  Digest128 place{};
  Digest128 mark{};
  node::AreaHandle area;
};

namespace {

constexpr uint64_t rounded(uint64_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace

uint64_t NodeMembers::area_bytes() {
  return rounded(sizeof(Head)) + 2 * (rounded(sizeof(Box)) + kBoxBytes);
}

NodeMembers::Head& NodeMembers::head(size_t rank) const {
  return *reinterpret_cast<Head*>(members_[rank].area.bytes().data());
}

// Of the box that ranks fill or read now.
std::span<std::byte> NodeMembers::bytes_of(size_t rank) const {
  const uint64_t each = rounded(sizeof(Box)) + kBoxBytes;
  return members_[rank].area.bytes().subspan(rounded(sizeof(Head)) + published_ % 2 * each, each);
}

NodeMembers::Box& NodeMembers::box_of(size_t rank) const {
  return *reinterpret_cast<Box*>(bytes_of(rank).data());
}

NodeMembers::~NodeMembers() {
  if (!is_agreed_ || !is_own_process()) return;
  head(own_).left.store(1, std::memory_order_release);
  tell();
}

bool NodeMembers::is_own_process() const {
  return ::getpid() == process_;
}

Result<std::unique_ptr<NodeMembers>> NodeMembers::make(Offer* offer) {
  std::unique_ptr<NodeMembers> made(new NodeMembers());
  made->process_ = ::getpid();
  SHW_ASSIGN_OR_RETURN(offer->place, node::neighbourhood(kLayoutVersion));
  SHW_ASSIGN_OR_RETURN(offer->mark, node::random_mark());
  SHW_ASSIGN_OR_RETURN(made->own_area_, node::SharedArea::create(area_bytes()));
  new (made->own_area_.bytes().data()) Head();
  reinterpret_cast<Head*>(made->own_area_.bytes().data())->mark = offer->mark;
  offer->area = made->own_area_.handle();
  return made;
}

Result<std::unique_ptr<NodeMembers>> NodeMembers::meet(Collective& inner, const Call& call) {
  const auto world = static_cast<size_t>(inner.size());
  if (world < 2 || world > kMost) return std::unique_ptr<NodeMembers>();
  const int64_t until_ns = end_of(call.timeout_ns);
  Offer own;
  auto made =
      without_exceptions("memory for the ranks of this machine", [&] { return make(&own); });
  if (!made.ok()) own = {};
  std::array<Offer, kMost> room;
  const auto offers = std::span(room).first(world);
  SHW_RETURN_IF_ERROR(
      inner.all_gather(call, std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(offers)));
  const bool together = std::ranges::all_of(offers, [&](const Offer& each) {
    return each.area.size_bytes > 0 && each.place == offers.front().place;
  });
  if (!together || !made.ok()) return std::unique_ptr<NodeMembers>();
  NodeMembers& members = **made;
  members.own_ = static_cast<size_t>(inner.rank());
  const Status able = without_exceptions("reaching the ranks of this machine",
                                         [&] { return members.open(offers); });
  Result<bool> goes = members.agree(able.ok(), until_ns, call.timeout_ns);
  if (!goes.ok()) {
    members.fail(goes.status());  // for who has seen that all are here, and goes on
    inner.abort(goes.status());
  }
  SHW_RETURN_IF_ERROR(goes.status());
  return *goes ? std::move(*made) : std::unique_ptr<NodeMembers>();
}

Status NodeMembers::open(std::span<const Offer> offers) {
  rows_.resize(offers.size());
  members_.reserve(offers.size());
  for (const Offer& each : offers) {
    SHW_ASSIGN_OR_RETURN(node::SharedArea area, node::SharedArea::open(each.area));
    area.close_handle();
    members_.push_back({std::move(area), node::ProcessWatch(each.area.process), each.area.process});
    const size_t rank = members_.size() - 1;
    const bool sound = members_[rank].area.bytes().size() >= area_bytes() &&
                       head(rank).mark == each.mark && members_[rank].watch.is_watched();
    if (!sound) return data_loss("what another rank offers is not its memory");
  }
  return {};
}

template <typename IsLate>
Status NodeMembers::late(int64_t timeout_ns, const IsLate& is_late) const {
  std::string ranks;
  std::string lowest;
  for (size_t rank = 0; rank < size(); ++rank) {
    if (!is_late(rank)) continue;
    if (lowest.empty()) lowest = fmt::to_string(rank);
    ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
  }
  return deadline_exceeded(
             fmt::format("rank {} did not take part within {} ms", ranks, timeout_ns / 1'000'000))
      .with_detail("rank", lowest);
}

// Whoever is able has opened the memory of all, so it hears of each whether that one is: all ranks
// that are able come to the same, and one that is not has said so.
Result<bool> NodeMembers::agree(bool able, int64_t until_ns, int64_t timeout_ns) {
  node::SharedWord& own = reinterpret_cast<Head*>(own_area_.bytes().data())->state;
  own.store(able ? kJoined : kUnable, std::memory_order_release);
  node::wake_all(own);
  bool goes = able;
  for (size_t rank = 0; goes && rank < members_.size(); ++rank) {
    node::SharedWord& state = head(rank).state;
    while (state.load(std::memory_order_acquire) == kNothing) {
      if (until_ns >= 0 && now_ns() >= until_ns) {
        return late(timeout_ns, [this](size_t each) {
          return head(each).state.load(std::memory_order_acquire) == kNothing;
        });
      }
      Status is_gone = gone(rank);
      if (!is_gone.ok() && state.load(std::memory_order_acquire) == kNothing) return is_gone;
      node::wait_for_change(state, kNothing, kSliceNs);
    }
    goes = state.load(std::memory_order_acquire) == kJoined;
  }
  own_area_.close_handle();
  is_agreed_ = goes;
  return goes;
}

void NodeMembers::put(const Operation& operation) {
  ++published_;  // the number that this box will have
  Box& box = box_of(own_);
  box.kind = static_cast<uint32_t>(operation.kind);
  box.tag = operation.call.tag;
  box.sequence = operation.call.sequence;
  box.reduction = static_cast<int32_t>(operation.reduction);
  box.root = operation.root;
  box.in_bytes = operation.in_bytes;
  box.out_bytes = operation.out_bytes;
  box.value_count = operation.value_count;
  const auto sizes = operation.sizes.first(std::min(operation.sizes.size(), kMost));
  const auto out_sizes = operation.out_sizes.first(std::min(operation.out_sizes.size(), kMost));
  box.size_count = static_cast<uint32_t>(sizes.size());
  box.out_size_count = static_cast<uint32_t>(out_sizes.size());
  std::ranges::copy(sizes, box.sizes.begin());
  std::ranges::copy(out_sizes, box.out_sizes.begin());
}

std::span<std::byte> NodeMembers::own_box() {
  return bytes_of(own_).last(kBoxBytes);
}

std::span<const std::byte> NodeMembers::box(size_t rank) const {
  return bytes_of(rank).last(kBoxBytes);
}

// What another process may write to is read once, into memory of this one.
Operation NodeMembers::operation(size_t rank) {
  const Box& box = box_of(rank);
  Operation found;
  found.kind = static_cast<Kind>(box.kind);
  found.call.tag = box.tag;
  found.call.sequence = box.sequence;
  found.reduction = static_cast<ReduceOperation>(box.reduction);
  found.root = box.root;
  found.in_bytes = box.in_bytes;
  found.out_bytes = box.out_bytes;
  found.value_count = box.value_count;
  const std::span<uint64_t> rows(rows_[rank]);
  std::ranges::copy(box.sizes, rows.begin());
  std::ranges::copy(box.out_sizes, rows.subspan(kMost).begin());
  found.sizes = rows.first(std::min<size_t>(box.size_count, kMost));
  found.out_sizes = rows.subspan(kMost, std::min<size_t>(box.out_size_count, kMost));
  return found;
}

void NodeMembers::publish() {
  head(own_).published.store(published_, std::memory_order_release);
  tell();
}

void NodeMembers::tell() const {
  node::SharedWord& changes = head(0).changes;
  changes.fetch_add(1, std::memory_order_acq_rel);
  node::wake_all(changes);
}

// Numbers come back to their beginning after 2^32 boxes.
bool NodeMembers::is_behind(size_t rank) const {
  const uint32_t theirs = head(rank).published.load(std::memory_order_acquire);
  return static_cast<int32_t>(theirs - published_) < 0;
}

Status NodeMembers::wait(int64_t until_ns, int64_t timeout_ns) {
  node::SharedWord& changes = head(0).changes;
  for (;;) {
    const uint32_t seen = changes.load(std::memory_order_acquire);
    size_t behind = 0;
    while (behind < size() && !is_behind(behind)) ++behind;
    if (behind == size()) return {};
    SHW_RETURN_IF_ERROR(failure());
    for (size_t rank = behind; rank < size(); ++rank) {
      if (!is_behind(rank)) continue;
      Status is_gone = gone(rank);
      if (!is_gone.ok() && is_behind(rank)) return is_gone;
    }
    const int64_t left_ns = until_ns < 0 ? kSliceNs : until_ns - now_ns();
    if (left_ns <= 0) return late(timeout_ns, [this](size_t rank) { return is_behind(rank); });
    node::wait_for_change(changes, seen, std::min(left_ns, kSliceNs));
  }
}

// Whoever asks looks again whether it still waits for the rank.
Status NodeMembers::gone(size_t rank) const {
  if (head(rank).left.load(std::memory_order_acquire) != 0) {
    return aborted(fmt::format("rank {} has left the collective while others wait for it", rank))
        .with_detail("rank", fmt::to_string(rank));
  }
  if (!members_[rank].watch.has_ended()) return {};
  return unavailable(fmt::format("process {} of rank {} ended while other ranks wait for it",
                                 members_[rank].process, rank))
      .with_detail("rank", fmt::to_string(rank));
}

void NodeMembers::fail(const Status& cause) noexcept {
  const MutexLock lock(mutex_);
  if (!failure_.ok()) return;
  failure_ = without_exceptions("ending a collective", [&] {
    return cause.ok() ? aborted("the collective was aborted") : cause;
  });
  Head& own = head(own_);
  const size_t bytes = encode_status_briefly(failure_, own.cause);
  own.stopped.store(static_cast<uint32_t>(bytes), std::memory_order_release);
  tell();
}

Status NodeMembers::failure() {
  const MutexLock lock(mutex_);
  for (size_t rank = 0; failure_.ok() && rank < size(); ++rank) {
    const uint32_t bytes = head(rank).stopped.load(std::memory_order_acquire);
    if (bytes == 0) continue;
    std::array<std::byte, kBriefStatusBytes> cause = head(rank).cause;
    failure_ = decode_status(std::span(cause).first(std::min<size_t>(bytes, cause.size())));
  }
  return failure_;
}

}  // namespace shardwright::collective::internal

// SPDX-License-Identifier: Apache-2.0
#include "core/exec/node_group_internal.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <new>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"

namespace shardwright::exec::internal {
namespace {

constexpr uint64_t kLine = 64;  // of a processor's cache: what changes apart lies apart
constexpr uint64_t kPage = kExtentAlignmentBytes;
constexpr int64_t kWaitNs = 20'000'000;

}  // namespace

struct NodeGroup::Head {
  node::SharedWord changes = 0;
  node::SharedWord stopped = 0;   // number of the sharer that has failed, plus one
  std::atomic<uint64_t> left{0};  // bit s: sharer s has gone in order, whatever its end was
};
struct NodeGroup::Slot {
  node::SharedWord ready = 0;  // number of the task in it, plus one
  node::SharedWord left = 0;   // sharers that have not taken it
};

// The heads lie in a page in front of the slots.
uint64_t NodeGroup::area_bytes(uint64_t slots, uint64_t slot_bytes) {
  static_assert((kMostSlots + 1) * kLine <= kPage);
  return kPage + slots * slot_bytes;
}

uint64_t NodeGroup::slot_bytes_of(const ShareRules& rules) {
  return (rules.most_bytes + kPage - 1) / kPage * kPage;
}

uint64_t NodeGroup::slots_of(uint64_t area_bytes, uint64_t slot_bytes) {
  const uint64_t slots = area_bytes < kPage ? 0 : (area_bytes - kPage) / slot_bytes;
  return slots > kMostSlots || NodeGroup::area_bytes(slots, slot_bytes) != area_bytes ? 0 : slots;
}

void NodeGroup::begin_area(std::span<std::byte> area, uint64_t slots) {
  new (area.data()) Head();
  for (uint64_t s = 0; s < slots; ++s) new (area.data() + (s + 1) * kLine) Slot();
}

NodeGroup::~NodeGroup() {
  if (area_) head().left.fetch_or(uint64_t{1} << own_, std::memory_order_release);
}

NodeGroup::Head& NodeGroup::head() const {
  return *reinterpret_cast<Head*>(area_.bytes().data());
}

NodeGroup::Slot& NodeGroup::slot_head(uint32_t number) const {
  return *reinterpret_cast<Slot*>(area_.bytes().data() + (number % slots_ + 1) * kLine);
}

std::span<std::byte> NodeGroup::slot(uint32_t number) const {
  return area_.bytes().subspan(kPage + number % slots_ * slot_bytes_, slot_bytes_);
}

bool NodeGroup::is_free(uint32_t number) const {
  if (number < slots_) return true;
  const Slot& slot = slot_head(number);
  return slot.ready.load(std::memory_order_acquire) == number - slots_ + 1 &&
         slot.left.load(std::memory_order_acquire) == 0;
}

bool NodeGroup::is_ready(uint32_t number) const {
  return slot_head(number).ready.load(std::memory_order_acquire) == number + 1;
}

void NodeGroup::publish(uint32_t number) {
  Slot& slot = slot_head(number);
  const auto others = static_cast<uint32_t>(std::popcount(tasks_[number].sharers)) - 1;
  slot.left.store(others, std::memory_order_relaxed);
  slot.ready.store(number + 1, std::memory_order_release);
  tell();
}

void NodeGroup::release(uint32_t number) {
  if (slot_head(number).left.fetch_sub(1, std::memory_order_acq_rel) == 1) tell();
}

void NodeGroup::stop() {
  uint32_t nobody = 0;
  head().stopped.compare_exchange_strong(nobody, own_ + 1);
  tell();
}

void NodeGroup::tell() const {
  head().changes.fetch_add(1, std::memory_order_release);
  node::wake_all(head().changes);
}

uint32_t NodeGroup::seen() const {
  return head().changes.load(std::memory_order_acquire);
}

// Processes are looked at where nothing came for a while, and where a rank has failed: it may have
// found first that another one's has ended.
Status NodeGroup::wait(uint32_t seen) const {
  const uint32_t stopped = head().stopped.load(std::memory_order_acquire);
  if (stopped != 0 && stopped != own_ + 1 && stopped <= members_.size()) {
    SHW_RETURN_IF_ERROR(check_members());
    const std::string rank = fmt::to_string(members_[stopped - 1].rank);
    return aborted(fmt::format("rank {} failed while ranks of its machine shared reads", rank))
        .with_detail("stopped_by", rank);
  }
  node::wait_for_change(head().changes, seen, kWaitNs);
  return this->seen() == seen ? check_members() : Status();
}

Status NodeGroup::wait(uint32_t seen, Stillness* still, int64_t next) const {
  const int64_t now_ns = real_clock().monotonic_ns();
  if (still->since_ns < 0 || still->seen != seen) *still = {seen, now_ns};
  if (now_ns - still->since_ns <= patience_ns_) return wait(seen);
  return deadline_exceeded(fmt::format(
      "no rank of this machine has read or taken anything for {} s{}", patience_ns_ / 1'000'000'000,
      next < 0 ? ""
               : fmt::format("; the next block is to come from rank {}",
                             reader_of(static_cast<uint32_t>(next)))));
}

// Whoever has left may have ended since: because another one had.
Status NodeGroup::check_members() const {
  for (size_t m = 0; m < members_.size(); ++m) {
    Status status = check_member(m);
    const uint64_t left = head().left.load(std::memory_order_acquire);
    if (!status.ok() && (left >> m & 1) == 0) return status;
  }
  return {};
}

Status NodeGroup::check_member(size_t number) const {
  const Member& member = members_[number];
  if (!member.watch.has_ended()) return {};
  return unavailable(fmt::format("process {} of rank {} ended while ranks of its machine shared "
                                 "reads; load again",
                                 member.process, member.rank))
      .with_detail("ended_rank", fmt::to_string(member.rank));
}

}  // namespace shardwright::exec::internal

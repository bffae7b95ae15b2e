// SPDX-License-Identifier: Apache-2.0
//
// NodeMembers: the ranks of a group that all run on one machine, as one of them sees the others.
// Each has an area of memory that the others reach: two boxes that it fills in turn, and the number
// of the last one that it has published. A rank that has seen all others publish box n knows that
// they are done with box n - 1, so the memory of that one is free for box n + 1. Used by one
// thread; fail is thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/collective/collective.h"
#include "core/collective/operation_internal.h"
#include "core/concurrency/mutex.h"
#include "core/node/process.h"
#include "core/node/shared_area.h"
#include "core/node/shared_word.h"

namespace shardwright::collective::internal {

// When an operation that begins now has to be over, of the monotonic clock; negative = never.
int64_t end_of(int64_t timeout_ns);

class NodeMembers {
 public:
  static constexpr size_t kMost = 64;
  static constexpr uint64_t kBoxBytes = uint64_t{64} << 10;  // whole words

  // Collective over `inner`, one all_gather: null on all ranks where not all of them run on one
  // machine or reach each other's memory. The failures of inner; UNAVAILABLE when a process ends.
  static Result<std::unique_ptr<NodeMembers>> meet(Collective& inner, const Call& call);
  ~NodeMembers();
  NodeMembers(const NodeMembers&) = delete;
  NodeMembers& operator=(const NodeMembers&) = delete;

  size_t size() const { return members_.size(); }
  size_t rank() const { return own_; }
  // Not in a child that this process has forked: that is no rank.
  bool is_own_process() const;

  // This rank's next box: what it calls, and its bytes. Not in it until published.
  void put(const Operation& operation);
  std::span<std::byte> own_box();
  void publish();
  // Until all have published as many boxes as this rank. until_ns: of the monotonic clock,
  // negative = no limit; timeout_ns: as messages have it. ABORTED for a rank that has left and for
  // what another rank has failed with; UNAVAILABLE for a process that has ended; DEADLINE_EXCEEDED.
  Status wait(int64_t until_ns, int64_t timeout_ns);
  // Of a rank that has published it. The rows of sizes lie in memory of this rank.
  Operation operation(size_t rank);
  std::span<const std::byte> box(size_t rank) const;

  // Ends the group for all its ranks with that failure; the first one counts.
  void fail(const Status& cause) noexcept SHW_EXCLUDES(mutex_);
  // Success while nothing has failed, here or elsewhere.
  Status failure() SHW_EXCLUDES(mutex_);

 private:
  struct Head;
  struct Box;
  struct Offer;
  struct Member {
    node::SharedArea area;
    node::ProcessWatch watch;
    int32_t process = 0;
  };
  NodeMembers() = default;
  static Result<std::unique_ptr<NodeMembers>> make(Offer* offer);
  static uint64_t area_bytes();
  Status open(std::span<const Offer> offers);
  Result<bool> agree(bool able, int64_t until_ns, int64_t timeout_ns);
  Head& head(size_t rank) const;
  Box& box_of(size_t rank) const;
  std::span<std::byte> bytes_of(size_t rank) const;
  bool is_behind(size_t rank) const;
  Status gone(size_t rank) const;
  template <typename IsLate>
  Status late(int64_t timeout_ns, const IsLate& is_late) const;
  void tell() const;

  size_t own_ = 0;
  int32_t process_ = 0;
  node::SharedArea own_area_;
  std::vector<Member> members_;                        // by rank, this one among them
  std::vector<std::array<uint64_t, 2 * kMost>> rows_;  // of operation(), by rank
  uint32_t published_ = 0;
  bool is_agreed_ = false;
  Mutex mutex_;
  Status failure_ SHW_GUARDED_BY(mutex_);
};

}  // namespace shardwright::collective::internal

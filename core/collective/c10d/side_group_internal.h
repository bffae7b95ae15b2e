// SPDX-License-Identifier: Apache-2.0
//
// SideGroup: a c10d backend of our own beside a process group of the host. An operation of a
// backend cannot be withdrawn: after a failed call it stays pending and takes what a peer sends
// next. So nothing of ours runs over a group of the host, and a side group with which a call failed
// is given up by all ranks. How they learn of it, by a store, since a backend wakes nobody:
//
//   1. the first rank whose reason reaches the store (compareSet of ID/end) says why;
//   2. the others ask for that key, less often while they are in no call, and follow;
//   3. where the transport failed, that rank waits a little for the others to answer (ID/left/RANK)
//      and names the one that does not (ID/gone);
//   4. the last one to follow removes the keys;
//   5. a backend of a device is aborted on each rank: its kernels wait on the device for ranks that
//      may be gone, and whatever the host puts behind them would wait, too. One for host memory is
//      left to itself, as its threads hold up nobody.
//
// One thread of the group does all of that, so that giving up neither blocks nor needs memory.
// Thread-safe; after a fork the child leaves it alone.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "core/collective/c10d/group_end_internal.h"
#include "core/concurrency/mutex.h"

namespace shardwright::collective::internal {

using Works = std::vector<c10::intrusive_ptr<::c10d::Work>>;

// What a side group is made of.
struct GroupParts {
  c10::intrusive_ptr<::c10d::Store> store;  // a connection of its own
  std::string id;                           // of this group, and of no other one of the store
  c10::intrusive_ptr<::c10d::Backend> backend;
  c10::Device device = c10::kCPU;  // where the backend wants its tensors
  std::chrono::milliseconds poll{0};
};

class SideGroup {
 public:
  // Co-owned by its collectives and the list of those that are kept. In a forked child it is never
  // destroyed.
  static std::shared_ptr<SideGroup> make(GroupParts parts);
  SideGroup(const SideGroup&) = delete;
  SideGroup& operator=(const SideGroup&) = delete;

  int32_t rank() const { return rank_; }
  int32_t size() const { return size_; }
  ::c10d::Backend& backend() { return *parts_.backend; }
  c10::Device device() const { return parts_.device; }
  // Longest wait between two looks at what ended the group.
  std::chrono::milliseconds slice() const;
  bool is_of_this_process() const;

  // Number of a call, equal on all ranks; while there is one, the thread asks often for the end.
  uint64_t begin_call() SHW_EXCLUDES(mutex_);
  void end_call() SHW_EXCLUDES(mutex_);
  // As far as this rank knows; what it wants itself counts before the others know.
  std::optional<GroupEnd> end() SHW_EXCLUDES(mutex_);
  // The same; asks the store. Throws what the store throws.
  std::optional<GroupEnd> look_for_end() SHW_EXCLUDES(mutex_);
  // Ends the group on all ranks, unless it has ended. Returns at once.
  void give_up(GroupEnd end) noexcept SHW_EXCLUDES(mutex_);
  // Where the group has ended: what all ranks call the reason, as far as that comes in time.
  std::optional<GroupEnd> wait_for_end() SHW_EXCLUDES(mutex_);

  // Holds an operation that was given up, and with it this backend, until it is done.
  void keep(c10::intrusive_ptr<::c10d::Work> work) SHW_EXCLUDES(mutex_);

 private:
  explicit SideGroup(GroupParts parts);
  // What is pending is left to itself: nobody may answer it.
  ~SideGroup();
  void run() noexcept SHW_EXCLUDES(mutex_);
  bool must_look() SHW_REQUIRES(mutex_);
  std::optional<GroupEnd> found() SHW_EXCLUDES(mutex_);
  GroupEnd told(const GroupEnd& mine) SHW_EXCLUDES(mutex_);
  void settle(GroupEnd end, bool is_mine) noexcept SHW_EXCLUDES(mutex_);
  void abort_on_device() noexcept SHW_EXCLUDES(mutex_);
  void name_who_is_gone(GroupEnd* end, bool is_mine) SHW_EXCLUDES(mutex_);
  std::string silent_ranks() SHW_EXCLUDES(mutex_);
  void follow() SHW_EXCLUDES(mutex_);
  std::string key(std::string_view name) const;
  std::chrono::milliseconds poll() const;

  GroupParts parts_;
  const int32_t rank_;
  const int32_t size_;
  const pid_t process_;

  Mutex store_mutex_;  // for what talks to the store beside the thread
  Mutex mutex_;
  Condition changed_;
  bool stopping_ SHW_GUARDED_BY(mutex_) = false;
  uint64_t calls_ SHW_GUARDED_BY(mutex_) = 0;
  uint64_t open_calls_ SHW_GUARDED_BY(mutex_) = 0;
  bool store_failed_ SHW_GUARDED_BY(mutex_) = false;
  std::optional<GroupEnd> asked_ SHW_GUARDED_BY(mutex_);
  std::optional<GroupEnd> end_ SHW_GUARDED_BY(mutex_);
  Works kept_ SHW_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace shardwright::collective::internal

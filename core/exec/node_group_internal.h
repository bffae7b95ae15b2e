// SPDX-License-Identifier: Apache-2.0
//
// NodeGroup: the ranks of a load that run on one machine and reach each other's memory, the blocks
// that several of them want, and the memory through which these go. It comes out of a NodeMeeting.
// It has slots of one task each: task t goes through slot t % slots once task t - slots has been
// taken by all who want it. Whoever takes tasks in ascending order, and reads its own so, never
// waits for ever.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/concurrency/cancellation.h"
#include "core/exec/shared_schedule_internal.h"
#include "core/node/process.h"
#include "core/node/shared_area.h"
#include "core/node/shared_word.h"

namespace shardwright::exec::internal {

class NodeGroup {
 public:
  ~NodeGroup();
  NodeGroup(const NodeGroup&) = delete;
  NodeGroup& operator=(const NodeGroup&) = delete;

  uint32_t own_number() const { return own_; }  // among the sharers
  int32_t reader_of(uint32_t number) const { return members_[tasks_[number].reader].rank; }
  // Those of an exchange come last.
  std::span<const SharedTask> tasks() const { return tasks_; }

  // Of the slot of task `number`. Its reader fills a slot that is free and publishes it; the other
  // sharers take from one that is ready and release it.
  bool is_free(uint32_t number) const;
  bool is_ready(uint32_t number) const;
  std::span<std::byte> slot(uint32_t number) const;
  void publish(uint32_t number);
  void release(uint32_t number);

  // The others stop, too: this rank has failed.
  void stop();
  static bool is_stopped(const Status& status) { return !status.detail("stopped_by").empty(); }
  static bool is_loss_of_rank(const Status& status) { return !status.detail("ended_rank").empty(); }
  // A number that changes with each publish, release and stop, and the wait for the next one; not
  // longer than some milliseconds, as deadlines pass. ABORTED with detail stopped_by when another
  // rank has failed: it tells why. UNAVAILABLE with detail ended_rank when the process of one has
  // ended. DEADLINE_EXCEEDED when nothing has changed for as long as ranks are patient; next: the
  // task that is waited for, negative = none.
  struct Stillness {
    uint32_t seen = 0;
    int64_t since_ns = -1;
  };
  uint32_t seen() const;
  Status wait(uint32_t seen, Stillness* still, int64_t next) const;

 private:
  struct Member {
    int32_t rank = 0;
    int32_t process = 0;
    node::ProcessWatch watch;
  };
  struct Slot;
  struct Head;
  friend class NodeMeeting;  // makes it
  NodeGroup() = default;
  static constexpr uint64_t kMostSlots = 63;  // whose heads fit a page
  static uint64_t slot_bytes_of(const ShareRules& rules);
  static uint64_t area_bytes(uint64_t slots, uint64_t slot_bytes);
  static uint64_t slots_of(uint64_t area_bytes, uint64_t slot_bytes);  // 0: no such area
  static void begin_area(std::span<std::byte> area, uint64_t slots);
  Status check_member(size_t number) const;
  Status check_members() const;
  Status wait(uint32_t seen) const;
  Head& head() const;
  Slot& slot_head(uint32_t number) const;
  void tell() const;

  uint32_t own_ = 0;
  std::vector<Member> members_;
  std::vector<SharedTask> tasks_;
  node::SharedArea area_;
  uint32_t slots_ = 0;
  uint64_t slot_bytes_ = 0;
  int64_t patience_ns_ = -1;
};

}  // namespace shardwright::exec::internal

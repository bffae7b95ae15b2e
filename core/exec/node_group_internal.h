// SPDX-License-Identifier: Apache-2.0
//
// NodeGroup: the ranks of a load that run on one machine and reach each other's memory, the blocks
// that several of them want, and the memory through which these go. It has slots of one task each:
// task t goes through slot t % slots once task t - slots has been taken by all who want it. Whoever
// takes tasks in ascending order, and reads its own so, never waits for ever.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/collective/exchange.h"
#include "core/concurrency/cancellation.h"
#include "core/exec/shared_schedule_internal.h"
#include "core/node/process.h"
#include "core/node/shared_area.h"
#include "core/node/shared_word.h"

namespace shardwright::exec::internal {

struct GroupRules {
  ShareRules share;
  uint64_t most_bytes = 0;  // of all slots, of which each has room for the longest task
  int64_t patience_ns =
      -1;  // how long a rank waits for others that do nothing, negative = no limit
};
// What a rank reads at once of what lies side by side, where it asks the device.
inline constexpr uint64_t kSharedRunBytes = uint64_t{4} << 20;
// Slots that a group has per rank.
inline constexpr uint32_t kSlotsPerRank = 4;

class NodeGroup {
 public:
  // Two steps of all ranks of the exchange, whose failure is returned; ready: how this rank is so
  // far. Then the ranks of each machine meet without the others: *group becomes their group, null
  // where this rank shares nothing with another, or the failure of this rank alone: its deadline,
  // or that the process of a neighbour has ended. wanted: as in share_blocks. What a machine does
  // not offer is no failure: its ranks read alone.
  static Status form(collective::Exchange& exchange, const Status& ready,
                     std::span<const WantedBlock> wanted, const GroupRules& rules,
                     const CallControl& control,
                     Result<std::unique_ptr<NodeGroup>>* group) noexcept;

  uint32_t own_number() const { return own_; }  // among the sharers
  int32_t reader_of(uint32_t number) const { return members_[tasks_[number].reader].rank; }
  int64_t patience_ns() const { return patience_ns_; }
  size_t size() const { return members_.size(); }
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
  // ended.
  uint32_t seen() const;
  Status wait(uint32_t seen) const;

 private:
  struct Member {
    int32_t rank = 0;
    int32_t process = 0;
    node::ProcessWatch watch;
  };
  struct Slot;
  struct Head;
  NodeGroup() = default;
  Status check_member(size_t number) const;
  Status check_members() const;
  Head& head() const;
  Slot& slot_head(uint32_t number) const;
  void tell() const;
  friend class GroupMaker;

  uint32_t own_ = 0;
  std::vector<Member> members_;
  std::vector<SharedTask> tasks_;
  node::SharedArea area_;
  uint32_t slots_ = 0;
  uint64_t slot_bytes_ = 0;
  int64_t patience_ns_ = -1;
};

}  // namespace shardwright::exec::internal

// SPDX-License-Identifier: Apache-2.0
//
// NodeMeeting: how the ranks of a load that run on one machine become a NodeGroup. Each rank puts
// what it wants into memory of its own that others can open, and offers it to the coordinator,
// which tells each rank who its neighbours are. From there on they meet in that memory: they open
// each other's lists, the first of them makes the memory for all, the others open it and say
// whether they could and what they made of the lists, and the first one says whether it goes. What
// a machine does not offer is no failure: its ranks read alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/collective/exchange.h"
#include "core/concurrency/cancellation.h"
#include "core/exec/node_group_internal.h"
#include "core/node/shared_area.h"

namespace shardwright::exec::internal {

struct GroupRules {
  ShareRules share;
  uint64_t most_bytes = 0;  // of all slots, of which each has room for the longest task
  int64_t patience_ns =
      -1;  // how long a rank waits for others that do nothing, negative = no limit
  std::string_view machine;  // ranks that say another one are no neighbours; outlives the meeting
};
// Slots that a group has per rank: one is filled while another is emptied. To make, map and free
// more of them takes longer than they would save.
inline constexpr uint32_t kSlotsPerRank = 2;

class NodeMeeting {
 public:
  // exchange and control outlive it. machine of the rules: see RuntimeOptions.
  NodeMeeting(collective::Exchange& exchange, const GroupRules& rules, const CallControl& control);
  // Whoever leaves before the end says so.
  ~NodeMeeting();
  NodeMeeting(const NodeMeeting&) = delete;
  NodeMeeting& operator=(const NodeMeeting&) = delete;

  // Two steps of all ranks of the exchange, whose failure is returned; ready: how this rank is so
  // far. wanted: as in share_blocks; none = this rank takes no part.
  Status meet(const Status& ready, std::span<const WantedBlock> wanted) noexcept;
  // The lowest rank that may share memory with this one. Known after meet.
  int32_t node() const;
  // That a block of this rank's list comes in a round of an exchange to that rank of its node.
  // Before a step of all ranks that comes before join.
  void set_round(size_t block, int64_t round, int32_t taker);
  // With the neighbours alone: their group, null where this rank shares nothing with another, or
  // the failure of this rank alone: its deadline, or that the process of a neighbour has ended.
  Result<std::unique_ptr<NodeGroup>> join() noexcept;

 private:
  struct Neighbour;
  struct ListHead;
  Result<std::vector<std::byte>> offer_list(Status ready, std::span<const WantedBlock> wanted);
  Status read_answer(std::span<const std::byte> answer);
  Status make_list(std::span<const WantedBlock> wanted);
  Status open_lists();
  Status read_list(const Neighbour& neighbour);
  Status make_area();
  Status open_area();
  Status use_area(node::SharedArea area);
  bool is_first() const;
  void say(node::SharedWord ListHead::* word, uint32_t value);
  Result<uint32_t> hear(size_t neighbour, node::SharedWord ListHead::* word, uint32_t least) const;
  Result<std::unique_ptr<NodeGroup>> join_neighbours();
  Result<bool> lead(Status able);
  Result<bool> follow(Status able);
  static ListHead& head_of(const node::SharedArea& list);

  collective::Exchange& exchange_;
  const GroupRules rules_;
  const CallControl& control_;
  Digest128 place_{};
  Digest128 mark_{};
  node::SharedArea own_list_;
  std::vector<SharedBlock> own_blocks_;  // that are in it
  std::vector<Neighbour> neighbours_;
  std::vector<node::SharedArea> lists_;
  std::vector<std::vector<SharedBlock>> blocks_;
  std::unique_ptr<NodeGroup> group_;
  bool is_settled_ = false;
};

}  // namespace shardwright::exec::internal

// SPDX-License-Identifier: Apache-2.0
//
// What ranks say of the contents of their replicas: compared entry by entry, and put into the sets
// by which later saves compare them in 16 bytes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "core/plan/save/merge_internal.h"
#include "core/plan/save/replica_sets.h"

namespace shardwright::plan::internal {

// One rank's replica of an entry.
struct HeldContent {
  uint32_t rank = 0;
  uint32_t entry = 0;   // in the rank's description
  Digest128 content{};  // never all-zero
  // Of a sharded tensor the digest of the boxes that the rank holds: only those that hold the same
  // are compared. Else all-zero.
  Digest128 boxes{};
};

// The content digests that ranks gave, entry by entry. Costs O(ranks) per entry that is asked for.
// Views the plans. One thread.
class RankContents {
 public:
  explicit RankContents(const RankPlans& ranks);

  // Whether some rank gave digests of its own: else those of the descriptions are all there are,
  // and one comparison per description is enough.
  bool any_of_ranks() const { return any_of_ranks_; }
  // Replicas of a group that have a digest; those who hold the same follow each other, by ascending
  // ranks. members: not empty.
  void collect_tensor(std::span<const Member> members, std::vector<HeldContent>* held);
  void collect_object(std::span<const Member> members, std::vector<HeldContent>* held);

 private:
  // All-zero = none.
  Digest128 content_of_tensor(const RankMember& member) const;
  Digest128 content_of_object(const RankMember& member) const;

  const RankPlans& ranks_;
  RankMembers members_;
  bool any_of_ranks_ = false;
};

// replicas_differ naming the first rank and the next that differs, of those who hold the same.
Status check_contents(std::string_view name, std::span<const HeldContent> held);

// Collects the sets of all ranks. Entries come in the order of the merge.
class ReplicaSetBuilder {
 public:
  explicit ReplicaSetBuilder(size_t rank_count) : ranks_(rank_count) {}
  // Those who hold the same make a set.
  void add_tensor(std::span<const HeldContent> held);
  void add_object(std::span<const HeldContent> held);
  std::vector<ReplicaSets> take() { return std::move(ranks_); }

 private:
  void add_entry(std::span<const HeldContent> alike, std::vector<uint32_t> ReplicaSet::* entries);

  std::vector<ReplicaSets> ranks_;
  std::map<std::vector<uint32_t>, uint32_t> numbers_;  // holders -> number of their set
  std::vector<uint32_t> holders_;                      // scratch
};

}  // namespace shardwright::plan::internal

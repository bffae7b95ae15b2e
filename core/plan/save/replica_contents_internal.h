// SPDX-License-Identifier: Apache-2.0
//
// What ranks say of the contents of their replicas.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/save/merge_internal.h"

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

enum class ContentsOf {
  kAllRanks,
  kDistinct,  // one rank of each description, where no rank gave digests of its own
};

// The content digests that ranks gave, entry by entry. Costs O(ranks) per entry that is asked for.
// Views the plans. One thread.
class RankContents {
 public:
  RankContents(const RankPlans& ranks, ContentsOf which);

  // Replicas of a group that have a digest; those who hold the same follow each other, by ascending
  // ranks. Valid until the next call. members: not empty.
  std::span<const HeldContent> of_tensor(std::span<const Member> members);
  std::span<const HeldContent> of_object(std::span<const Member> members);

 private:
  std::span<const RankMember> members_of(std::span<const Member> members);
  Digest128 content_of_tensor(const RankMember& member) const;  // all-zero = none

  const RankPlans& ranks_;
  RankMembers members_;
  bool distinct_ = false;
  std::vector<RankMember> firsts_;  // scratch
  std::vector<HeldContent> held_;
};

}  // namespace shardwright::plan::internal

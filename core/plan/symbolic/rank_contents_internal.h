// SPDX-License-Identifier: Apache-2.0
//
// RankContents: the content digests that ranks gave, entry by entry, from descriptions and parts.
// Costs O(ranks) per entry that is asked for. Views the descriptions. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/save/replica_contents_internal.h"
#include "core/plan/symbolic/groups_internal.h"
#include "core/plan/symbolic/part_index_internal.h"

namespace shardwright::plan::internal {

class RankContents {
 public:
  RankContents(const RankDescriptions& ranks, const PartIndex& parts);

  // Whether some rank gave digests in its part: else those of the descriptions are all there are,
  // and one comparison per description is enough.
  bool any_in_parts() const { return any_in_parts_; }
  // Replicas of a group that have a digest, sorted as check_contents wants them. members: not empty.
  void collect_tensor(std::span<const GroupMember> members, std::vector<HeldContent>* held);
  void collect_object(std::span<const GroupMember> members, std::vector<HeldContent>* held);

 private:
  const std::vector<uint32_t>& ranks_of(uint32_t description);
  // The content of a tensor that the rank gave in its part; all-zero = none.
  Digest128 content_in_part(const GroupMember& member, int32_t rank) const;
  std::vector<Box> boxes_of(const GroupMember& member, int32_t rank) const;
  void collect(const GroupMember& member, bool sharded, std::vector<HeldContent>* held);

  const RankDescriptions& ranks_;
  const PartIndex& parts_;
  bool any_in_parts_ = false;
  std::vector<std::vector<uint32_t>> ranks_of_;  // of each description; made when first asked for
};

}  // namespace shardwright::plan::internal

// SPDX-License-Identifier: Apache-2.0
//
// ListedTensor: a tensor whose boxes follow no rule that all its ranks share, chunk by chunk as the
// explicit planner has it. Value; thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/save/merge_internal.h"
#include "core/plan/symbolic/groups_internal.h"
#include "core/plan/symbolic/part_index_internal.h"

namespace shardwright::plan::internal {

struct ListedTensor {
  size_t dimension_count = 0;
  std::vector<ExtentPair> boxes;        // of all chunks in catalog order, one pair per dimension
  std::vector<uint32_t> holder_begins;  // one more than chunks
  std::vector<Holder> holders;          // ascending rank in each chunk
  std::vector<uint32_t> owners;         // chunk -> its owner, a number into holders
  std::vector<uint32_t> by_owner;       // chunks by rank of their owner, then in order

  size_t chunk_count() const { return holder_begins.size() - 1; }
  std::span<const ExtentPair> box(size_t chunk) const {
    return {boxes.data() + chunk * dimension_count, dimension_count};
  }
  std::span<const Holder> holders_of(size_t chunk) const {
    return {holders.data() + holder_begins[chunk], holder_begins[chunk + 1] - holder_begins[chunk]};
  }
  const Holder& owner(size_t chunk) const { return holders[owners[chunk]]; }
  // Chunks that the rank writes, in order; after index_owners.
  std::span<const uint32_t> written_by(uint32_t rank) const;
  void index_owners();
};

// The distinct boxes of all members and who holds each. INVALID_ARGUMENT when a rank lists a box
// twice.
Result<ListedTensor> list_tensor(const RankDescriptions& ranks, const PartIndex& parts,
                                 std::span<const GroupMember> members);

}  // namespace shardwright::plan::internal

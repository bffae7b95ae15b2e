// SPDX-License-Identifier: Apache-2.0
//
// What ranks say of the contents of their replicas, whichever engine asks: compared entry by entry,
// and put into the sets by which later saves compare them in 16 bytes. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "core/plan/save/replica_sets.h"

namespace shardwright::plan::internal {

// One rank's replica of an entry.
struct HeldContent {
  uint32_t rank = 0;
  uint32_t entry = 0;   // in the rank's State
  Digest128 content{};  // never all-zero
  // Of a sharded tensor the digest of the boxes that the rank holds: only those that hold the same
  // are compared. Else all-zero.
  Digest128 boxes{};
};

// Digest of the boxes that a rank holds of a tensor, in whatever order it listed them.
Digest128 digest_of_boxes(std::vector<Box> boxes);

// Puts those who hold the same behind one another, by ascending ranks.
void sort_by_boxes(std::vector<HeldContent>* held);
// Those who hold the same as the first of `sorted`.
std::span<const HeldContent> first_alike(std::span<const HeldContent> sorted);

// replicas_differ naming the first rank and the next that differs, of those who hold the same.
Status check_contents(std::string_view name, std::span<const HeldContent> sorted);

// Collects the sets of all ranks. Entries come in the order of the merge.
class ReplicaSetBuilder {
 public:
  explicit ReplicaSetBuilder(size_t rank_count) : ranks_(rank_count) {}
  // sorted: of one tensor; those who hold the same make a set.
  void add_tensor(std::span<const HeldContent> sorted);
  void add_object(std::span<const HeldContent> sorted);
  std::vector<ReplicaSets> take() { return std::move(ranks_); }

 private:
  void add_entry(std::span<const HeldContent> alike, std::vector<uint32_t> ReplicaSet::* entries);

  std::vector<ReplicaSets> ranks_;
  std::map<std::vector<uint32_t>, uint32_t> numbers_;  // holders -> number of their set
  std::vector<uint32_t> holders_;                      // scratch
};

}  // namespace shardwright::plan::internal

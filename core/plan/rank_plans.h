// SPDX-License-Identifier: Apache-2.0
//
// RankPlans: what all ranks of a save hold; what merging reads. Ranks that hold the same entries
// share one description, so names are looked at once and not once per rank; what only one rank
// knows is its part, read wherever its columns lie. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/plan/local_plan.h"
#include "core/plan/plan_options.h"

namespace shardwright::plan {

// Where the entries of a description stand in the columns of its parts.
struct EntryNumbers {
  explicit EntryNumbers(const Description& description);
  std::vector<uint32_t> lists;      // of each tensor: tensors that are boxes before it
  std::vector<uint32_t> own_sizes;  // of each object: rank_local objects before it
  bool has_ruled = false;           // some tensor is
};

// What one rank describes. Its items are its boxes, then its objects, then its tensors that are
// whole or have a layout, of which each is one item.
struct RankView {
  const Description& description;
  const EntryNumbers& numbers;
  const PartView& part;
  uint32_t rank = 0;

  // Of a tensor that is boxes.
  const BoxList& list(uint32_t tensor) const { return part.lists[numbers.lists[tensor]]; }
  uint32_t object_item(uint32_t object) const {
    return static_cast<uint32_t>(part.boxes.size()) + object;
  }
  uint32_t tensor_item(uint32_t tensor) const {
    return object_item(static_cast<uint32_t>(description.catalog.objects.size())) + tensor;
  }
  size_t item_count() const;
  // One per tensor, object and box: what a write list says of each.
  uint64_t bit_count() const;
  // The box of an item that is no object; may be empty.
  Box box_of(uint32_t item) const;
  // The boxes that the rank holds of a tensor; may be empty ones.
  std::vector<Box> boxes_of(uint32_t tensor) const;
  uint64_t object_bytes(uint32_t object) const;
};

struct RankPlans {
  std::vector<Description> descriptions;           // distinct, in the order of their first ranks
  std::vector<EntryNumbers> numbers;               // of each description
  std::vector<Digest128> digests;                  // of each description
  std::vector<uint32_t> first_ranks;               // of each description
  std::vector<uint32_t> description_of_rank;       // one per rank
  std::vector<PartView> parts;                     // one per rank, or empty: no rank adds anything
  std::vector<std::shared_ptr<const void>> owned;  // what parts view, unless it is the caller's

  size_t rank_count() const { return description_of_rank.size(); }
  const PartView& part(uint32_t rank) const;
  RankView of(uint32_t rank) const {
    const uint32_t description = description_of_rank[rank];
    return {descriptions[description], numbers[description], part(rank), rank};
  }
};

// Ranks that must send their description: for each distinct digest the lowest. digests: one per
// rank.
std::vector<int32_t> representative_ranks(std::span<const Digest128> digests);

// Ranks with these digests. descriptions: those of the representatives, in their order;
// parts: in any order, at most one per rank. INVALID_ARGUMENT naming ranks for a wrong count, a
// description that has another digest, a part that is missing, doubled or does not fit its
// description, options that differ.
Result<RankPlans> make_rank_plans(std::span<const Digest128> digests,
                                  std::vector<Description> descriptions,
                                  std::vector<LocalPart> parts);
// The same of parts that lie in what is owned.
Result<RankPlans> make_rank_plans(std::span<const Digest128> digests,
                                  std::vector<Description> descriptions,
                                  std::vector<PartView> parts,
                                  std::vector<std::shared_ptr<const void>> owned);

// Of what the rank at this position describes, but for the contents of what it has a part of: a
// write list names what it answers. Ranks that describe the same have digests of their own, since
// their rules give them other boxes. description: its digest.
Digest128 local_digest(const Digest128& description, const PartView& part, RankPosition position);
Digest128 local_digest_of(const RankPlans& ranks, uint32_t rank);

// Calls visit(item) for each item of the rank in the order of its entries, objects among tensors as
// the host listed them.
template <typename Visit>
void for_each_item(const RankView& rank, const Visit& visit) {
  const std::span<const uint32_t> begins = rank.part.listing.object_begins;
  const auto objects = static_cast<uint32_t>(rank.description.catalog.objects.size());
  const auto tensors = static_cast<uint32_t>(rank.description.forms.size());
  uint32_t object = 0;
  for (uint32_t t = 0; t < tensors; ++t) {
    for (; object < begins.size() && begins[object] <= t; ++object) visit(rank.object_item(object));
    if (rank.description.is_ruled(t)) {
      visit(rank.tensor_item(t));
    } else if (rank.description.forms[t] == kBoxes) {
      const BoxList& list = rank.list(t);
      for (uint32_t b = 0; b < list.count; ++b) visit(list.begin + b);
    }
  }
  for (; object < objects; ++object) visit(rank.object_item(object));
}

// The same in the order in which the host listed them. scratch keeps its capacity from rank to
// rank.
template <typename Visit>
void for_each_listed(const RankView& rank, std::vector<uint32_t>* scratch, const Visit& visit) {
  if (rank.part.listing.order.empty()) return for_each_item(rank, visit);
  scratch->clear();
  for_each_item(rank, [scratch](uint32_t item) { scratch->push_back(item); });
  for (const uint32_t item : rank.part.listing.order) visit((*scratch)[item]);
}

}  // namespace shardwright::plan

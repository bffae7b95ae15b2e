// SPDX-License-Identifier: Apache-2.0
//
// RankPlans: what all ranks of a save hold, wherever its columns lie; what merging reads. Ranks that
// hold the same entries share one description, so names are looked at once and not once per rank;
// what only one rank knows (its boxes, its sizes) is its part. Views: valid as long as the plans or
// buffers that they were made of. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/plan/local_view.h"
#include "core/plan/rank_descriptions.h"
#include "core/plan/rank_position.h"
#include "core/plan/symbolic_description.h"

namespace shardwright::plan {

struct DescriptionView {
  CatalogView entries;              // tensors without boxes, and objects
  std::span<const uint32_t> forms;  // one per tensor
  std::span<const ShardAxis> axes;  // of all layouts, back to back
  std::span<const uint32_t> layout_ends;
  std::span<const Digest128> tensor_digests;  // of tensors that are whole; empty = of none
  std::span<const Digest128> object_digests;  // empty = of none
  std::vector<uint32_t> list_numbers;         // of each tensor: tensors that are boxes before it
  std::vector<uint32_t> own_numbers;          // of each object: rank_local objects before it

  bool has_ruled = false;  // some tensor is

  bool is_ruled(size_t tensor) const {
    return forms[tensor] != kBoxes && forms[tensor] != kNothing;
  }
  // Of a tensor that is whole or has a layout.
  std::span<const ShardAxis> axes_of(size_t tensor) const;
};

struct PartView {
  std::span<const BoxList> lists;  // one per tensor that is boxes, in order
  std::span<const ChunkRecord> boxes;
  std::span<const ExtentPair> more;
  std::span<const uint64_t> object_sizes;  // of rank_local objects, in order
  // Content digests of these tensors, ascending; of all tensors when no numbers are given.
  std::span<const uint32_t> digest_tensors;
  std::span<const Digest128> tensor_digests;
  std::span<const Digest128> object_digests;  // of all objects, or empty
  ListingView listing;
};
PartView view_of(const SymbolicPart& part);

// What one rank describes. Its items are its boxes, then its objects, then its tensors that are whole
// or have a layout, of which each is one item.
struct RankView {
  const DescriptionView& description;
  const PartView& part;
  uint32_t rank = 0;

  // Of a tensor that is boxes.
  const BoxList& list(uint32_t tensor) const {
    return part.lists[description.list_numbers[tensor]];
  }
  uint32_t object_item(uint32_t object) const {
    return static_cast<uint32_t>(part.boxes.size()) + object;
  }
  uint32_t tensor_item(uint32_t tensor) const {
    return object_item(static_cast<uint32_t>(description.entries.objects.size())) + tensor;
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
  std::vector<DescriptionView> descriptions;       // distinct, in the order of their first ranks
  std::vector<uint32_t> first_ranks;               // of each description
  std::vector<uint32_t> description_of_rank;       // one per rank
  std::vector<PartView> parts;                     // one per rank, or empty: no rank adds anything
  std::vector<std::shared_ptr<const void>> owned;  // what had to be made for the views

  size_t rank_count() const { return description_of_rank.size(); }
  const PartView& part(uint32_t rank) const;
  RankView of(uint32_t rank) const {
    return {descriptions[description_of_rank[rank]], part(rank), rank};
  }
};

// Of explicit local plans, which passed check_ranks.
RankPlans rank_plans_of(const LocalViews& locals);
RankPlans rank_plans_of(const RankDescriptions& ranks);
DescriptionView view_of(const SymbolicDescription& description);

// Of what the rank at this position describes, but for the contents of what it has a part of: a write
// list names what it answers. Ranks that describe the same have digests of their own, since their
// rules give them other boxes. description: its digest.
Digest128 local_digest(const Digest128& description, const PartView& part, RankPosition position);
Digest128 local_digest_of(const RankDescriptions& ranks, int32_t rank);

// Calls visit(item) for each item of the rank in the order of its entries, objects among tensors as
// the host listed them.
template <typename Visit>
void for_each_item(const RankView& rank, const Visit& visit) {
  const std::span<const uint32_t> begins = rank.part.listing.object_begins;
  const auto objects = static_cast<uint32_t>(rank.description.entries.objects.size());
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

// The same in the order in which the host listed them. scratch keeps its capacity from rank to rank.
template <typename Visit>
void for_each_listed(const RankView& rank, std::vector<uint32_t>* scratch, const Visit& visit) {
  if (rank.part.listing.order.empty()) return for_each_item(rank, visit);
  scratch->clear();
  for_each_item(rank, [scratch](uint32_t item) { scratch->push_back(item); });
  for (const uint32_t box : rank.part.listing.order) visit((*scratch)[box]);
}

}  // namespace shardwright::plan

// SPDX-License-Identifier: Apache-2.0
//
// One rank's items: chunks, then objects, in catalog order.
#include <algorithm>

#include "core/plan/flat_chunks_internal.h"
#include "core/plan/symbolic/rank_writes_internal.h"

namespace shardwright::plan::internal {
namespace {

class RankItems {
 public:
  RankItems(const SymbolicBody& body, uint32_t rank)
      : body_(body),
        rank_(rank),
        description_(body.ranks.of(static_cast<int32_t>(rank))),
        number_(body.ranks.description_of_rank[rank]) {}

  std::vector<WriteItem> run() {
    for (const PlacedEntry& each : catalog_order(body_, body_.merged.tensors, rank_)) {
      if (each.group == kLocalEntry) {
        add_local(each.entry);
      } else if (body_.tensors[each.group].grid == kListed) {
        add_listed(each.group);
      } else {
        add_regular(each);
      }
    }
    add_objects();
    return std::move(items_);
  }

 private:
  uint64_t bits_of(uint32_t entry) const {
    return static_cast<uint64_t>(dtype_bits(description_.catalog.tensors[entry].dtype));
  }

  void add(uint32_t entry, uint32_t piece, int64_t elements) {
    items_.push_back({entry, piece, packed_bytes(bits_of(entry), elements)});
  }

  void add_local(uint32_t entry) {
    if (description_.forms[entry] == kBoxes) {
      for (const ListedBox& box :
           sorted_boxes(body_.parts.boxes(static_cast<int32_t>(rank_), entry)))
        add(entry, box.piece, elements_of(box.extents));
      return;
    }
    const int64_t elements = element_count_of(description_.catalog.shape(entry));
    if (elements != 0) add(entry, 0, elements);
  }

  void add_listed(size_t group) {
    const ListedTensor& listed = body_.listed[body_.tensors[group].map];
    for (const uint32_t chunk : listed.written_by(rank_)) {
      const Holder& owner = listed.owner(chunk);
      add(owner.entry, owner.piece, elements_of(listed.box(chunk)));
    }
  }

  void add_regular(const PlacedEntry& each) {
    if (description_.forms[each.entry] == kNothing) return;
    const TensorPlan& tensor = body_.tensors[each.group];
    const uint32_t column = body_.maps[tensor.map].column_of(number_, static_cast<int32_t>(rank_));
    const int64_t elements = body_.grids[tensor.grid].elements_of_column(column);
    if (elements != 0 && body_.column_owner(each.group, column) == rank_)
      add(each.entry, 0, elements);
  }

  void add_objects() {
    const SymbolicPart* part = body_.ranks.part_of(static_cast<int32_t>(rank_));
    std::vector<uint64_t> sizes;  // of all objects of the description
    size_t local = 0;
    for (const ObjectRecord& object : description_.catalog.objects) {
      const bool own = object.kind == EntryKind::kRankLocal;
      sizes.push_back(own ? part->object_sizes[local++] : object.size_bytes);
    }
    for (const PlacedEntry& each : catalog_order(body_, body_.merged.objects, rank_)) {
      if (each.group != kLocalEntry && body_.object_owner(each.group) != rank_) continue;
      items_.push_back({each.entry, kObjectPiece, sizes[each.entry]});
    }
  }

  const SymbolicBody& body_;
  uint32_t rank_;
  const SymbolicDescription& description_;
  uint32_t number_;
  std::vector<WriteItem> items_;
};

}  // namespace

std::vector<PlacedEntry> catalog_order(const SymbolicBody& body, const EntryGroups& groups,
                                       uint32_t rank) {
  const std::vector<uint32_t>& group_of = groups.group_of[body.ranks.description_of_rank[rank]];
  std::vector<PlacedEntry> order;
  order.reserve(group_of.size());
  for (uint32_t i = 0; i < group_of.size(); ++i) {
    PlacedEntry each{{static_cast<int32_t>(rank), i}, i, group_of[i]};
    if (each.group != kLocalEntry) {
      const GroupMember& first = groups.of(each.group)[0];
      each.place = {body.merged.first_ranks[first.description], first.entry};
    }
    order.push_back(each);
  }
  if (!std::ranges::is_sorted(order, {}, &PlacedEntry::place))
    std::ranges::sort(order, {}, &PlacedEntry::place);
  return order;
}

std::vector<WriteItem> writes_of_rank(const SymbolicBody& body, uint32_t rank) {
  return RankItems(body, rank).run();
}

}  // namespace shardwright::plan::internal

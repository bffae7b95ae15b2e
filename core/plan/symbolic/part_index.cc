// SPDX-License-Identifier: Apache-2.0
//
// Running sums over the lists of each part.
#include "core/plan/symbolic/part_index_internal.h"

#include <algorithm>

namespace shardwright::plan::internal {

PartIndex::PartIndex(const RankDescriptions& ranks) : ranks_(ranks) {
  list_of_.resize(ranks.descriptions.size());
  for (size_t d = 0; d < ranks.descriptions.size(); ++d) {
    const std::vector<uint32_t>& forms = ranks.descriptions[d].forms;
    if (std::ranges::find(forms, uint32_t{kBoxes}) == forms.end()) continue;
    uint32_t next = 0;
    for (const uint32_t form : forms) {
      list_of_[d].push_back(next);
      if (form == kBoxes) ++next;
    }
  }
  for (const SymbolicPart& part : ranks.parts) {
    part_begins_.push_back(begins_.size());
    const uint32_t number = ranks.description_of_rank[static_cast<size_t>(part.rank)];
    const SymbolicDescription& description = ranks.descriptions[number];
    uint64_t begin = 0;
    size_t list = 0;
    for (size_t t = 0; t < description.forms.size(); ++t) {
      if (description.forms[t] != kBoxes) continue;
      begins_.push_back(begin);
      begin += uint64_t{part.box_counts[list++]} * description.catalog.tensors[t].dimension_count;
    }
  }
}

PartBoxesView::Boxes PartIndex::boxes(int32_t rank, uint32_t entry) const {
  const uint32_t number = ranks_.description_of_rank[static_cast<size_t>(rank)];
  const SymbolicPart* part = ranks_.part_of(rank);
  const uint32_t list = list_of_[number][entry];
  const uint64_t begin =
      begins_[part_begins_[static_cast<size_t>(part - ranks_.parts.data())] + list];
  return {part->box_counts[list],
          ranks_.descriptions[number].catalog.tensors[entry].dimension_count,
          part->extents.data() + begin};
}

std::strong_ordering compare_extents(std::span<const ExtentPair> a, std::span<const ExtentPair> b) {
  for (size_t d = 0; d < a.size(); ++d) {
    if (auto order = a[d].offset <=> b[d].offset; order != 0) return order;
  }
  for (size_t d = 0; d < a.size(); ++d) {
    if (auto order = a[d].size <=> b[d].size; order != 0) return order;
  }
  return std::strong_ordering::equal;
}

int64_t elements_of(std::span<const ExtentPair> box) {
  int64_t elements = 1;
  for (const ExtentPair& pair : box) {
    if (pair.size == 0) return 0;
    elements *= pair.size;
  }
  return elements;
}

std::vector<ListedBox> sorted_boxes(const PartBoxesView::Boxes& boxes) {
  std::vector<ListedBox> sorted;
  for (size_t b = 0; b < boxes.count; ++b) {
    if (elements_of(boxes[b]) != 0) sorted.push_back({boxes[b], static_cast<uint32_t>(b)});
  }
  std::ranges::stable_sort(sorted, [](const ListedBox& a, const ListedBox& b) {
    return compare_extents(a.extents, b.extents) < 0;
  });
  return sorted;
}

}  // namespace shardwright::plan::internal

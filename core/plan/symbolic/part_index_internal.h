// SPDX-License-Identifier: Apache-2.0
//
// PartIndex: the boxes that a rank gives for one tensor, in constant time. 8 bytes per list of
// boxes, nothing where nobody lists any. Views the descriptions. Immutable after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/symbolic/rank_descriptions.h"

namespace shardwright::plan::internal {

class PartIndex {
 public:
  explicit PartIndex(const RankDescriptions& ranks);

  // entry: a tensor of the rank's description that is boxes.
  PartBoxesView::Boxes boxes(int32_t rank, uint32_t entry) const;
  bool empty() const { return begins_.empty(); }

 private:
  const RankDescriptions& ranks_;
  std::vector<std::vector<uint32_t>> list_of_;  // description, tensor -> number of its list
  std::vector<size_t> part_begins_;             // part -> its first value in begins_
  std::vector<uint64_t> begins_;                // list -> its first extent in the part
};

// A box that a rank lists, and its number there.
struct ListedBox {
  std::span<const ExtentPair> extents;
  uint32_t piece = 0;
};
// Boxes that hold an element, row-major by offsets, then by sizes, then by piece.
std::vector<ListedBox> sorted_boxes(const PartBoxesView::Boxes& boxes);
// Offsets of all dimensions before sizes.
std::strong_ordering compare_extents(std::span<const ExtentPair> a, std::span<const ExtentPair> b);
int64_t elements_of(std::span<const ExtentPair> box);

}  // namespace shardwright::plan::internal

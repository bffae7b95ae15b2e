// SPDX-License-Identifier: Apache-2.0
//
// The boxes of a rank's list, read straight from its columns. Pure functions.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "core/layout/box.h"
#include "core/plan/local_plan.h"

namespace shardwright::plan::internal {

// Offset and size of box `box` of the list in its split dimension k.
inline ExtentPair list_pair(const PartView& part, const BoxList& list, uint32_t box, uint32_t k) {
  const ChunkRecord& record = part.boxes[list.begin + box];
  if (k == 0) return {record.offset0, record.size0};
  if (k == 1) return {record.offset1, record.size1};
  const auto further = static_cast<uint64_t>(std::popcount(list.split_mask)) - 2;
  return part.more[list.more_begin + box * further + (k - 2)];
}

// With all dimensions.
inline Box list_box(const PartView& part, const BoxList& list, uint32_t box,
                    std::span<const int64_t> shape) {
  Box made = whole_box(shape);
  uint32_t k = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if ((list.split_mask >> d & 1) == 0) continue;
    const ExtentPair pair = list_pair(part, list, box, k++);
    made.offsets[d] = pair.offset;
    made.sizes[d] = pair.size;
  }
  return made;
}

}  // namespace shardwright::plan::internal

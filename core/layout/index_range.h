// SPDX-License-Identifier: Apache-2.0
//
// IndexRange: indices along one dimension, and the one rule that cuts them into parts, that of
// torch.chunk (2.x): parts of ceil(size / parts) indices in order, then one of what is left, then
// empty ones, which lie at the end. Values and pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace shardwright {

struct IndexRange {
  int64_t begin = 0;
  int64_t size = 0;
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

// All parts of `size` indices at once. size and part are not negative.
struct ChunkParts {
  int64_t step = 0;       // size of a full part
  int64_t full = 0;       // number of full parts
  int64_t remainder = 0;  // size of the part behind them, 0 = none

  int64_t size_of(int64_t part) const {
    if (part < full) return step;
    return part == full ? remainder : 0;
  }
  // Its begin is counted from that of what is cut.
  IndexRange operator[](int64_t part) const {
    return {std::min(part, full) * step + (part > full ? remainder : 0), size_of(part)};
  }
};

inline ChunkParts chunk_parts(int64_t size, int64_t parts) {
  const int64_t step = size / parts + (size % parts == 0 ? 0 : 1);
  if (step == 0) return {};
  return {step, size / step, size % step};
}

// The given one of `parts` (at least 1) parts of the range.
inline IndexRange chunk_of(const IndexRange& range, int64_t parts, int64_t part) {
  const IndexRange within = chunk_parts(range.size, parts)[part];
  return {range.begin + within.begin, within.size};
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of one cut: parts of ceil(size / parts) in order, then one of what is left, then
// empty ones. Pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace shardwright::plan::internal {

struct Cut {
  int64_t step = 0;       // size of a full part
  int64_t full = 0;       // number of full parts
  int64_t remainder = 0;  // size of the part behind them, 0 = none
};

inline Cut cut_of(int64_t size, int64_t parts) {
  const int64_t step = size / parts + (size % parts == 0 ? 0 : 1);
  if (step == 0) return {};
  return {step, size / step, size % step};
}

inline int64_t part_size(const Cut& cut, int64_t part) {
  if (part < cut.full) return cut.step;
  return part == cut.full ? cut.remainder : 0;
}

// Where part begins inside what is cut; empty parts begin at its end.
inline int64_t part_offset(const Cut& cut, int64_t part) {
  return std::min(part, cut.full) * cut.step + (part > cut.full ? cut.remainder : 0);
}

}  // namespace shardwright::plan::internal

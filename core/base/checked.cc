// SPDX-License-Identifier: Apache-2.0
#include "core/base/checked.h"

#include <fmt/format.h>

namespace shardwright {

Result<int64_t> checked_element_count(std::span<const int64_t> extents) {
  int64_t product = 1;  // zero extents aside, so that a later zero cannot hide an overflow
  bool empty = false;
  for (size_t i = 0; i < extents.size(); ++i) {
    const int64_t extent = extents[i];
    if (extent < 0)
      return invalid_argument(fmt::format("extent {} of the shape is negative: {}", i, extent));
    if (extent == 0) {
      empty = true;
    } else if (!checked_multiply(product, extent, &product)) {
      return invalid_argument(
          fmt::format("the element count of the shape [{}] does not fit 63 bits",
                      fmt::join(extents.begin(), extents.end(), ", ")));
    }
  }
  return empty ? 0 : product;
}

bool checked_round_up(uint64_t value, uint64_t multiple, uint64_t* out) {
  uint64_t sum = 0;
  if (!checked_add(value, multiple - 1, &sum)) return false;
  *out = sum & ~(multiple - 1);
  return true;
}

}  // namespace shardwright

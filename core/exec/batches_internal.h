// SPDX-License-Identifier: Apache-2.0
//
// Neighbours that together make about one step of work, so that small ones do not cost a task each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <vector>

namespace shardwright::exec::internal {

// Number of the first item of each batch, and their count behind it. A batch is at most
// limit_bytes, or one item. bytes_of: of an item.
template <std::ranges::random_access_range Items, typename BytesOf>
std::vector<size_t> batch_begins(const Items& items, uint64_t limit_bytes, BytesOf bytes_of) {
  std::vector<size_t> begins;
  uint64_t batch_bytes = 0;
  for (size_t i = 0; i < std::ranges::size(items); ++i) {
    const uint64_t bytes = bytes_of(items[i]);
    if (i == 0 || batch_bytes + bytes > limit_bytes) {
      begins.push_back(i);
      batch_bytes = 0;
    }
    batch_bytes += bytes;
  }
  begins.push_back(std::ranges::size(items));
  return begins;
}

}  // namespace shardwright::exec::internal

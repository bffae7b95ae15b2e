// SPDX-License-Identifier: Apache-2.0
//
// Listing: what a catalog cannot say about entries that a host described: their order and its own
// bytes. Values; thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace shardwright::plan {

struct Listing {
  std::vector<uint32_t> object_begins;  // per object: tensors listed before it, ascending; empty =
                                        // objects come last
  // Items in the order in which the host lists them, numbered through all entries in their order
  // (rank_plans.h, for_each_item); empty = as they stand.
  std::vector<uint32_t> order;
  std::vector<uint8_t> secondary;        // per box, 1 = only wanted by others; empty = 0
  std::vector<char> attributes;          // the host's own bytes of each tensor, then of each object
  std::vector<uint64_t> attribute_ends;  // where each ends, one per entry; empty = none
};

// The same wherever its columns lie.
struct ListingView {
  std::span<const uint32_t> object_begins;
  std::span<const uint32_t> order;
  std::span<const uint8_t> secondary;
  std::span<const char> attributes;
  std::span<const uint64_t> attribute_ends;

  bool empty() const {
    return object_begins.empty() && order.empty() && secondary.empty() && attribute_ends.empty();
  }
  // Of entry i: tensors first, then objects.
  std::string_view attribute(size_t entry) const {
    if (attribute_ends.empty()) return {};
    const uint64_t begin = entry == 0 ? 0 : attribute_ends[entry - 1];
    return {attributes.data() + begin, attribute_ends[entry] - begin};
  }
};

inline ListingView view_of(const Listing& listing) {
  return {listing.object_begins, listing.order, listing.secondary, listing.attributes,
          listing.attribute_ends};
}

}  // namespace shardwright::plan

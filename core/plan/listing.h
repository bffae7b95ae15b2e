// SPDX-License-Identifier: Apache-2.0
//
// Listing: what a catalog cannot say about entries that a host described: their order and its own
// bytes. Values; thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

namespace shardwright::plan {

// How columns lie: as vectors of their own, or wherever they are.
template <typename Value>
using OwnColumn = std::vector<Value>;
template <typename Value>
using ColumnView = std::span<const Value>;

template <template <typename> typename Column>
struct ListingOf {
  // Per object: tensors listed before it, ascending; empty = objects come last.
  Column<uint32_t> object_begins;
  // Items in the order in which the host lists them, numbered through all entries in their order
  // (rank_plans.h, for_each_item); empty = as they stand.
  Column<uint32_t> order;
  Column<uint8_t> secondary;        // per box, 1 = only wanted by others; empty = 0
  Column<char> attributes;          // the host's own bytes of each tensor, then of each object
  Column<uint64_t> attribute_ends;  // where each ends, one per entry; empty = none

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
using Listing = ListingOf<OwnColumn>;
using ListingView = ListingOf<ColumnView>;

// All columns of a listing as references.
auto columns_of_listing(auto& listing) {
  return std::tie(listing.object_begins, listing.order, listing.secondary, listing.attributes,
                  listing.attribute_ends);
}

inline ListingView view_of(const Listing& listing) {
  ListingView view;
  columns_of_listing(view) = columns_of_listing(listing);
  return view;
}

}  // namespace shardwright::plan

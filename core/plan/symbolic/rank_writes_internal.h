// SPDX-License-Identifier: Apache-2.0
//
// What one rank writes, worked out for this rank alone.
#pragma once

#include <vector>

#include "core/plan/symbolic/plan_body_internal.h"

namespace shardwright::plan::internal {

// The items that list_writes gives this rank. O(its entries), and n log n in them when its order of
// entries is not that of the catalog.
std::vector<WriteItem> writes_of_rank(const SymbolicBody& body, uint32_t rank);

// One entry of a rank at its place in the catalog: by the first rank that has the name, then by
// that rank's order.
struct CatalogPlace {
  int32_t rank = 0;
  uint32_t entry = 0;
  friend auto operator<=>(const CatalogPlace&, const CatalogPlace&) = default;
};
struct PlacedEntry {
  CatalogPlace place;
  uint32_t entry = 0;  // of the rank's description
  uint32_t group = 0;  // or kLocalEntry
};
// The rank's tensors or objects in catalog order.
std::vector<PlacedEntry> catalog_order(const SymbolicBody& body, const EntryGroups& groups,
                                       uint32_t rank);

}  // namespace shardwright::plan::internal

// SPDX-License-Identifier: Apache-2.0
//
// Units by the rank and the place in which they were listed first. Units come in the order of the
// merged catalog, and ranks mostly list their items in that order too: after a counting sort by rank
// there is nothing left to sort.
#include <algorithm>

#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {
namespace {

// Places of a rank's items in its own order.
class Places {
 public:
  explicit Places(std::span<const LocalView> locals) : locals_(locals) {}

  void set_rank(uint32_t rank) {
    const LocalView& view = locals_[rank];
    natural_ = view.listing.order.empty() && view.listing.object_begins.empty();
    if (natural_) return;
    places_.resize(view.item_count());
    uint32_t place = 0;
    for_each_listed(view, &scratch_, [&](uint32_t item) { places_[item] = place++; });
  }
  uint32_t of(uint32_t item) const { return natural_ ? item : places_[item]; }

 private:
  std::span<const LocalView> locals_;
  bool natural_ = true;
  std::vector<uint32_t> places_;
  std::vector<uint32_t> scratch_;
};

// The holder of the lowest rank that comes first in that rank's order.
uint32_t first_place(const Places& places, std::span<const UnitHolder> holders) {
  uint32_t first = places.of(holders[0].item);
  for (size_t i = 1; i < holders.size() && holders[i].rank == holders[0].rank; ++i)
    first = std::min(first, places.of(holders[i].item));
  return first;
}

}  // namespace

std::vector<uint32_t> listed_order(std::span<const LocalView> locals, const Deduplicated& merged,
                                   std::span<const uint32_t> wanted) {
  std::vector<size_t> begins(locals.size() + 1, 0);
  for (const uint32_t unit : wanted) ++begins[merged.holders_of(unit)[0].rank + 1];
  for (size_t r = 0; r < locals.size(); ++r) begins[r + 1] += begins[r];
  std::vector<uint32_t> order(wanted.size());
  std::vector<size_t> next(begins.begin(), begins.end());
  for (const uint32_t unit : wanted) order[next[merged.holders_of(unit)[0].rank]++] = unit;
  Places places(locals);
  for (uint32_t r = 0; r < locals.size(); ++r) {
    const std::span<uint32_t> units =
        std::span(order).subspan(begins[r], begins[r + 1] - begins[r]);
    if (units.empty()) continue;
    places.set_rank(r);
    const auto place_of = [&](uint32_t unit) {
      return first_place(places, merged.holders_of(unit));
    };
    if (!std::ranges::is_sorted(units, {}, place_of)) std::ranges::sort(units, {}, place_of);
  }
  return order;
}

}  // namespace shardwright::plan::internal

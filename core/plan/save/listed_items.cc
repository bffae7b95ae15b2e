// SPDX-License-Identifier: Apache-2.0
//
// Items by the rank and the place in which they were listed first. Items come in the order of the
// merged catalog, and ranks mostly list their items in that order too: after a counting sort by
// rank there is nothing left to sort. What a choice of owners wants to know of each goes with it,
// so that it reads one column from its beginning to its end: the items of a rank lie as far apart
// as there are ranks.
#include <algorithm>

#include "core/base/huge_pages.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {
namespace {

bool lists_by_number(const RankView& rank) {
  const ListingView& listing = rank.part.listing;
  return listing.order.empty() && listing.object_begins.empty() && !rank.numbers.has_ruled;
}

// The holder of the lowest rank that comes first in that rank's order.
uint32_t first_place(const ListedPlaces& places, std::span<const ItemHolder> holders) {
  uint32_t first = places.of(holders[0]);
  for (size_t i = 1; i < holders.size() && holders[i].rank == holders[0].rank; ++i)
    first = std::min(first, places.of(holders[i]));
  return first;
}

class ItemLister {
 public:
  ItemLister(const RankPlans& ranks, const MergedEntries& entries, const Merged& merged,
             std::span<const uint64_t> weights, ListedChoice choice)
      : stored_count_(merged.stored_count()),
        holders_(ranks, entries, merged),
        weights_(weights),
        choice_(choice),
        places_(ranks) {
    out_.begins.assign(ranks.rank_count() + 1, 0);
  }

  ListedItems run() {
    for_each_wanted([&](uint32_t, const auto& holders) { ++out_.begins[holders[0].rank + 1]; });
    for (size_t r = 1; r < out_.begins.size(); ++r) out_.begins[r] += out_.begins[r - 1];
    scatter();
    return std::move(out_);
  }

 private:
  template <typename Visit>
  void for_each_wanted(const Visit& visit) {
    for (uint32_t stored = 0; stored < stored_count_; ++stored) {
      const std::span<const ItemHolder> holders = holders_.of(stored);
      if (choice_ == ListedChoice::kAll || is_shared(holders)) visit(stored, holders);
    }
  }

  void scatter() {
    const size_t ranks = out_.begins.size() - 1;
    reserve_large(&out_.items, out_.begins.back());
    out_.items.resize(out_.begins.back());
    std::vector<size_t> next(out_.begins.begin(), out_.begins.end());
    std::vector<uint32_t> last(ranks, 0);  // place of the rank's last stored item
    std::vector<bool> sorted(ranks, true);
    for_each_wanted([&](uint32_t stored, const auto& holders) {
      const uint32_t rank = holders[0].rank;
      const uint32_t place = first_place(places_, holders);
      if (place < last[rank]) sorted[rank] = false;
      last[rank] = place;
      out_.items[next[rank]++] = {weights_[stored], stored, is_shared(holders)};
    });
    for (size_t r = 0; r < ranks; ++r) {
      if (!sorted[r]) sort_rank(r);
    }
  }

  void sort_rank(size_t rank) {
    const auto items =
        std::span(out_.items).subspan(out_.begins[rank], out_.begins[rank + 1] - out_.begins[rank]);
    std::ranges::sort(items, {}, [this](const ListedItems::Item& listed) {
      return first_place(places_, holders_.of(listed.stored));
    });
  }

  const size_t stored_count_;
  StoredHolders holders_;
  std::span<const uint64_t> weights_;
  ListedChoice choice_;
  ListedPlaces places_;
  ListedItems out_;
};

}  // namespace

ListedPlaces::ListedPlaces(const RankPlans& ranks) {
  const auto count = static_cast<uint32_t>(ranks.rank_count());
  bool by_number = true;
  for (uint32_t r = 0; r < count && by_number; ++r) by_number = lists_by_number(ranks.of(r));
  if (by_number) return;
  begins_.reserve(count + 1);
  begins_.push_back(0);
  for (uint32_t r = 0; r < count; ++r) begins_.push_back(begins_.back() + ranks.of(r).item_count());
  reserve_large(&places_, begins_.back());
  places_.resize(begins_.back());
  std::vector<uint32_t> scratch;
  for (uint32_t r = 0; r < count; ++r) {
    uint32_t place = 0;
    for_each_listed(ranks.of(r), &scratch,
                    [&](uint32_t item) { places_[begins_[r] + item] = place++; });
  }
}

ListedItems list_items(const RankPlans& ranks, const MergedEntries& entries, const Merged& merged,
                       std::span<const uint64_t> weights, ListedChoice choice) {
  return ItemLister(ranks, entries, merged, weights, choice).run();
}

}  // namespace shardwright::plan::internal

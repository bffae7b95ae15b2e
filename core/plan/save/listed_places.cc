// SPDX-License-Identifier: Apache-2.0
//
// Where hosts listed their items: ranks mostly list them by their numbers, and then nothing is
// kept.
#include <algorithm>

#include "core/base/huge_pages.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {
namespace {

bool lists_by_number(const RankView& rank) {
  const ListingView& listing = rank.part.listing;
  return listing.order.empty() && listing.object_begins.empty() && !rank.numbers.has_ruled;
}

}  // namespace

std::vector<uint64_t> item_begins(const RankPlans& ranks) {
  std::vector<uint64_t> begins{0};
  for (uint32_t r = 0; r < ranks.rank_count(); ++r)
    begins.push_back(begins.back() + ranks.of(r).item_count());
  return begins;
}

ListedPlaces::ListedPlaces(const RankPlans& ranks) {
  const auto count = static_cast<uint32_t>(ranks.rank_count());
  bool by_number = true;
  for (uint32_t r = 0; r < count && by_number; ++r) by_number = lists_by_number(ranks.of(r));
  if (by_number) return;
  begins_ = item_begins(ranks);
  reserve_large(&places_, begins_.back());
  places_.resize(begins_.back());
  std::vector<uint32_t> scratch;
  for (uint32_t r = 0; r < count; ++r) {
    uint32_t place = 0;
    for_each_listed(ranks.of(r), &scratch,
                    [&](uint32_t item) { places_[begins_[r] + item] = place++; });
  }
}

uint32_t ListedPlaces::first_of(std::span<const ItemHolder> holders) const {
  uint32_t first = of(holders[0]);
  for (size_t i = 1; i < holders.size() && holders[i].rank == holders[0].rank; ++i)
    first = std::min(first, of(holders[i]));
  return first;
}

}  // namespace shardwright::plan::internal

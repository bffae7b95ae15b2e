// SPDX-License-Identifier: Apache-2.0
//
// Runs, patterns and the way back from a chunk to its pick.
#include "core/plan/symbolic/choices_internal.h"

#include <algorithm>
#include <cstring>

namespace shardwright::plan::internal {

void Choices::begin_batch(std::span<const OpenItem> items, uint32_t most_holders) {
  const uint32_t pick_bytes = most_holders <= 0x100 ? 1 : most_holders <= 0x10000 ? 2 : 4;
  const auto number = static_cast<uint32_t>(batches_.size());
  batches_.push_back(
      {runs_.size(), picks_.size(), static_cast<uint32_t>(items.size()), pick_bytes, 0});
  for (uint32_t i = 0; i < items.size(); ++i)
    places_.push_back({items[i].group, number, i, items[i].elements, items[i].holders});
}

uint32_t Choices::add_pattern(std::span<const uint32_t> picks) {
  Batch& batch = batches_.back();
  for (const uint32_t pick : picks) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&pick);  // little-endian
    picks_.insert(picks_.end(), bytes, bytes + batch.pick_bytes);
  }
  return batch.pattern_count++;
}

void Choices::set_column(uint32_t column, uint32_t pattern) {
  const bool first = runs_.size() == batches_.back().runs_begin;
  if (first || runs_.back().pattern != pattern) runs_.push_back({column, pattern});
}

void Choices::index(size_t group_count) {
  std::ranges::stable_sort(places_, {}, &Place::group);
  place_begins_.assign(group_count + 1, 0);
  for (const Place& place : places_) ++place_begins_[place.group + 1];
  for (size_t g = 0; g < group_count; ++g) place_begins_[g + 1] += place_begins_[g];
  runs_.shrink_to_fit();
  picks_.shrink_to_fit();
}

uint32_t Choices::holder(const OpenItem& item, uint32_t column) const {
  const Place* place = &places_[place_begins_[item.group]];
  while (place->elements != item.elements ||
         (place->holders != 0 && place->holders != item.holders))
    ++place;
  const Batch& batch = batches_[place->batch];
  const size_t runs_end =
      place->batch + 1 < batches_.size() ? batches_[place->batch + 1].runs_begin : runs_.size();
  const auto run =
      std::upper_bound(runs_.begin() + static_cast<std::ptrdiff_t>(batch.runs_begin),
                       runs_.begin() + static_cast<std::ptrdiff_t>(runs_end), column,
                       [](uint32_t wanted, const Run& each) { return wanted < each.first_column; });
  const size_t pick = size_t{(run - 1)->pattern} * batch.item_count + place->item;
  uint32_t number = 0;
  std::memcpy(&number, picks_.data() + batch.picks_begin + pick * batch.pick_bytes,
              batch.pick_bytes);
  return number;
}

}  // namespace shardwright::plan::internal

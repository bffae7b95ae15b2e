// SPDX-License-Identifier: Apache-2.0
//
// LocalView: what one rank described, wherever its columns lie; what merging reads. The ranks of a
// job mostly describe the same tensors: those whose texts, extents and tensor records are equal
// share one table, so that names are looked at once and not once per rank; a table in which tensors
// belong to a rank is that rank's alone. Valid as long as the plans or buffers that it was made of.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/catalog_view.h"
#include "core/plan/save_plan.h"

namespace shardwright::plan {

struct ListingView {
  std::span<const uint32_t> object_begins;
  std::span<const uint32_t> order;
  std::span<const uint8_t> secondary;
  std::span<const char> attributes;
  std::span<const uint64_t> attribute_ends;

  // Of entry i: tensors first, then objects.
  std::string_view attribute(size_t entry) const {
    if (attribute_ends.empty()) return {};
    const uint64_t begin = entry == 0 ? 0 : attribute_ends[entry - 1];
    return {attributes.data() + begin, attribute_ends[entry] - begin};
  }
};

struct LocalView {
  int32_t rank = 0;
  int32_t world_size = 1;
  Digest128 options_digest{};
  std::string_view options_text;
  CatalogView catalog;
  std::span<const Digest128> tensor_digests;
  std::span<const Digest128> object_digests;
  ListingView listing;
  uint32_t table = 0;  // equal numbers: equal texts, extents and tensor records

  // Boxes and objects together: chunks are the first items, then objects.
  size_t item_count() const { return catalog.boxes.size() + catalog.objects.size(); }
};

ListingView view_of(const Listing& listing);
// Its table is 0.
LocalView view_of(const LocalSavePlan& plan);

// Views of many plans with their tables, and what had to be copied for them. Immovable views: they
// point into what is owned here and into the caller's plans or buffers.
struct LocalViews {
  std::vector<LocalView> views;
  uint32_t table_count = 0;
  std::vector<std::shared_ptr<const void>> owned;  // shared with nobody; of many types
};

// Views of plans in rank order, tables found by comparing neighbours and then all.
LocalViews views_of(std::span<const LocalSavePlan> locals);

// Calls visit(item) for each item of the view in the order in which the host listed them. scratch
// keeps its capacity from rank to rank.
template <typename Visit>
void for_each_listed(const LocalView& view, std::vector<uint32_t>* scratch, const Visit& visit);

// Items in the order of the entries, as for_each_listed without an order of the host's own.
template <typename Visit>
void for_each_item(const LocalView& view, const Visit& visit) {
  const auto chunks = static_cast<uint32_t>(view.catalog.boxes.size());
  const auto objects = static_cast<uint32_t>(view.catalog.objects.size());
  const std::span<const uint32_t> begins = view.listing.object_begins;
  uint32_t chunk = 0;
  for (uint32_t object = 0; object < begins.size(); ++object) {
    const uint32_t tensor = begins[object];
    const uint64_t end =
        tensor < view.catalog.tensors.size() ? view.catalog.tensors[tensor].chunk_begin : chunks;
    while (chunk < end) visit(chunk++);
    visit(chunks + object);
  }
  while (chunk < chunks) visit(chunk++);
  for (uint32_t object = static_cast<uint32_t>(begins.size()); object < objects; ++object)
    visit(chunks + object);
}

template <typename Visit>
void for_each_listed(const LocalView& view, std::vector<uint32_t>* scratch, const Visit& visit) {
  if (view.listing.order.empty()) return for_each_item(view, visit);
  scratch->clear();
  for_each_item(view, [scratch](uint32_t item) { scratch->push_back(item); });
  for (const uint32_t box : view.listing.order) visit((*scratch)[box]);
}

}  // namespace shardwright::plan

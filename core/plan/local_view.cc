// SPDX-License-Identifier: Apache-2.0
//
// Views of local plans, and which of them share a table.
#include "core/plan/local_view.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/hash_index.h"

namespace shardwright::plan {
namespace {

bool same_record(const TensorRecord& a, const TensorRecord& b) {
  return a.name == b.name && a.path == b.path && a.dtype == b.dtype && a.kind == b.kind &&
         a.rank == b.rank && a.dimension_count == b.dimension_count &&
         a.split_mask == b.split_mask && a.chunk_count == b.chunk_count;
}

bool same_table(const CatalogView& a, const CatalogView& b) {
  return std::ranges::equal(a.texts.ends(), b.texts.ends()) &&
         std::ranges::equal(a.tensors, b.tensors, same_record) &&
         std::ranges::equal(a.shapes, b.shapes) &&
         std::ranges::equal(a.texts.blob(), b.texts.blob());
}

uint64_t mixed(uint64_t hash, uint64_t value) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;
  hash = (hash ^ value) * kOdd;
  return hash ^ (hash >> 29);
}

template <typename T>
uint64_t hash_column(std::span<const T> column) {
  const auto bytes = std::as_bytes(column);
  return hash_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Of all that same_table compares.
uint64_t table_hash(const CatalogView& catalog) {
  uint64_t hash = mixed(0, hash_column(catalog.texts.blob()));
  hash = mixed(hash, hash_column(catalog.texts.ends()));
  hash = mixed(hash, hash_column(catalog.shapes));
  for (const TensorRecord& tensor : catalog.tensors) {
    hash = mixed(hash, tensor.name | uint64_t{tensor.path} << 32);
    hash =
        mixed(hash, static_cast<uint64_t>(tensor.dtype) | static_cast<uint64_t>(tensor.kind) << 16 |
                        uint64_t{tensor.dimension_count} << 32);
    hash = mixed(hash, static_cast<uint32_t>(tensor.rank));
    hash = mixed(hash, tensor.split_mask);
    hash = mixed(hash, tensor.chunk_count);
  }
  return hash;
}

// What belongs to a rank is shared with none.
bool can_be_shared(const CatalogView& catalog) {
  return std::ranges::none_of(catalog.tensors, [](const TensorRecord& tensor) {
    return tensor.kind == EntryKind::kRankLocal;
  });
}

}  // namespace

ListingView view_of(const Listing& listing) {
  return {listing.object_begins, listing.order, listing.secondary, listing.attributes,
          listing.attribute_ends};
}

LocalView view_of(const LocalSavePlan& plan) {
  LocalView view;
  view.rank = plan.rank;
  view.world_size = plan.world_size;
  view.options_digest = plan.options_digest;
  view.options_text = plan.options_text;
  view.catalog = view_of(plan.catalog);
  view.tensor_digests = plan.tensor_digests;
  view.object_digests = plan.object_digests;
  view.listing = view_of(plan.listing);
  return view;
}

LocalViews views_of(std::span<const LocalSavePlan> locals) {
  LocalViews made;
  made.views.reserve(locals.size());
  std::unordered_map<uint64_t, std::vector<size_t>> firsts;  // by hash: first view of each table
  for (const LocalSavePlan& local : locals) {
    LocalView view = view_of(local);
    if (!can_be_shared(view.catalog)) {
      view.table = made.table_count++;
    } else if (!made.views.empty() && same_table(made.views.back().catalog, view.catalog)) {
      view.table = made.views.back().table;
    } else {
      std::vector<size_t>& candidates = firsts[table_hash(view.catalog)];
      const auto found = std::ranges::find_if(candidates, [&](size_t first) {
        return same_table(made.views[first].catalog, view.catalog);
      });
      if (found == candidates.end()) {
        view.table = made.table_count++;
        candidates.push_back(made.views.size());
      } else {
        view.table = made.views[*found].table;
      }
    }
    made.views.push_back(view);
  }
  return made;
}

}  // namespace shardwright::plan

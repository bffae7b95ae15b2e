// SPDX-License-Identifier: Apache-2.0
//
// The tables behind CatalogIndex: hash tables by (name, rank) and by name, built at once, and a
// chunk search for each tensor that somebody asks for: most loads want few of many.
#include "core/plan/load/catalog_index.h"

#include <algorithm>
#include <mutex>

#include "core/plan/cover/cover_internal.h"
#include "core/plan/entry_index_internal.h"
#include "core/plan/search/chunk_search_internal.h"

namespace shardwright::plan {
namespace {

using internal::EntryIndex;
using internal::EntryKey;

// Tensors or objects by name.
template <typename Record>
class NameTables {
 public:
  NameTables(const TextTable& texts, const std::vector<Record>& records)
      : texts_(texts), records_(records) {
    by_key_.reset(records.size());
    std::vector<size_t> owned;
    for (size_t i = 0; i < records.size(); ++i) {
      by_key_.insert(key_at(i), i, [this](size_t at) { return key_at(at); });
      if (records[i].rank >= 0) owned.push_back(i);
    }
    std::ranges::stable_sort(owned, {}, [&](size_t i) { return records[i].rank; });
    lowest_.reset(owned.size());
    for (const size_t i : owned)  // the first one stays
      lowest_.insert(name_at(i), i, [this](size_t at) { return name_at(at); });
  }

  int64_t find(std::string_view name, int32_t rank) const {
    const auto find_key = [&](int32_t owner) {
      return by_key_.find({name, owner}, [this](size_t i) { return key_at(i); });
    };
    const int64_t own = rank < 0 ? -1 : find_key(rank);
    return own >= 0 ? own : find_key(-1);
  }

  int64_t find_of_any(std::string_view name) const {
    const int64_t shared = find(name, -1);
    if (shared >= 0) return shared;
    return lowest_.find({name, -1}, [this](size_t i) { return name_at(i); });
  }

 private:
  EntryKey key_at(size_t i) const { return {texts_.at(records_[i].name), records_[i].rank}; }
  EntryKey name_at(size_t i) const { return {texts_.at(records_[i].name), -1}; }

  const TextTable& texts_;
  const std::vector<Record>& records_;
  EntryIndex by_key_;
  EntryIndex lowest_;  // of rank_local entries by name alone: the one of the lowest rank
};

}  // namespace

struct CatalogIndex::Tables {
  explicit Tables(const Catalog& from)
      : catalog(from),
        tensors(from.texts, from.tensors),
        objects(from.texts, from.objects),
        searches(std::make_unique<Search[]>(from.tensors.size())) {}

  struct Search {
    std::once_flag once;
    std::unique_ptr<const internal::ChunkSearch> made;
  };
  const Catalog& catalog;
  NameTables<TensorRecord> tensors;
  NameTables<ObjectRecord> objects;
  std::unique_ptr<Search[]> searches;  // one per tensor
};

CatalogIndex::CatalogIndex(const Catalog& catalog)
    : tables_(std::make_unique<const Tables>(catalog)) {}
CatalogIndex::~CatalogIndex() = default;
CatalogIndex::CatalogIndex(CatalogIndex&&) noexcept = default;
CatalogIndex& CatalogIndex::operator=(CatalogIndex&&) noexcept = default;

const Catalog& CatalogIndex::catalog() const {
  return tables_->catalog;
}

int64_t CatalogIndex::find_tensor(std::string_view name, int32_t rank) const {
  return tables_->tensors.find(name, rank);
}

int64_t CatalogIndex::find_object(std::string_view name, int32_t rank) const {
  return tables_->objects.find(name, rank);
}

int64_t CatalogIndex::find_tensor_of_any(std::string_view name) const {
  return tables_->tensors.find_of_any(name);
}

int64_t CatalogIndex::find_object_of_any(std::string_view name) const {
  return tables_->objects.find_of_any(name);
}

const internal::ChunkSearch& CatalogIndex::search(size_t tensor) const {
  Tables::Search& own = tables_->searches[tensor];
  std::call_once(own.once, [&] {
    own.made = std::make_unique<const internal::ChunkSearch>(tables_->catalog, tensor);
  });
  return *own.made;
}

std::vector<uint64_t> CatalogIndex::chunks_meeting(size_t tensor, const Box& wanted) const {
  std::vector<uint64_t> chunks;
  // In a dimension that is not split a box meets all chunks or, empty, none.
  if (box_is_empty(wanted)) return chunks;
  const internal::SplitDims split = internal::split_dims(catalog(), tensor);
  search(tensor).filling(internal::region_of(split, wanted).data(), &chunks);
  return chunks;
}

Status CatalogIndex::prove_filled(size_t tensor, const Box& wanted,
                                  std::span<const uint64_t> meeting) const {
  const internal::SplitDims split = internal::split_dims(catalog(), tensor);
  const internal::Region region = internal::region_of(split, wanted);
  internal::CornerTotal total(split.count);
  for (const uint64_t chunk : meeting) {
    internal::Region common = internal::chunk_region(catalog(), catalog().tensors[tensor], chunk);
    for (uint32_t k = 0; k < split.count; ++k)
      common[k] = internal::common_of(common[k], region[k]);
    total.add(common.data());
  }
  if (total.sum() == internal::box_corner_sum({region.data(), split.count})) return {};
  return internal::not_filled(catalog(), tensor, wanted);
}

}  // namespace shardwright::plan

// SPDX-License-Identifier: Apache-2.0
//
// The tables behind CatalogIndex: hash tables by (name, rank) and by name, built at once, and a
// chunk search for each tensor that somebody asks for: most loads want few of many.
#include "core/plan/load/catalog_index.h"

#include <algorithm>
#include <mutex>

#include "core/plan/entry_index_internal.h"
#include "core/plan/load_plan.h"
#include "core/plan/search/chunk_search_internal.h"

namespace shardwright::plan {

namespace {

using internal::EntryIndex;
using internal::EntryKey;

EntryKey without_rank(const EntryKey& key) {
  return {key.name, -1};
}

}  // namespace

struct CatalogIndex::Tables {
  // Tensors or objects by name.
  struct NameTables {
    EntryIndex by_key;
    EntryIndex lowest;  // of rank_local entries by name alone: the one of the lowest rank

    template <typename Records, typename KeyAt>
    void fill(const Records& records, const KeyAt& key_at) {
      by_key.reset(records.size());
      std::vector<size_t> owned;
      for (size_t i = 0; i < records.size(); ++i) {
        by_key.insert(key_at(i), i, key_at);
        if (records[i].rank >= 0) owned.push_back(i);
      }
      const auto lower = [&records](size_t a, size_t b) {
        return records[a].rank < records[b].rank;
      };
      std::stable_sort(owned.begin(), owned.end(), lower);
      lowest.reset(owned.size());
      const auto name_at = [&key_at](size_t i) { return without_rank(key_at(i)); };
      for (const size_t i : owned) lowest.insert(name_at(i), i, name_at);  // the first one stays
    }

    template <typename KeyAt>
    int64_t find(std::string_view name, int32_t rank, const KeyAt& key_at) const {
      const int64_t own = rank < 0 ? -1 : by_key.find({name, rank}, key_at);
      return own >= 0 ? own : by_key.find({name, -1}, key_at);
    }

    template <typename KeyAt>
    int64_t find_of_any(std::string_view name, const KeyAt& key_at) const {
      const int64_t shared = by_key.find({name, -1}, key_at);
      if (shared >= 0) return shared;
      return lowest.find({name, -1}, [&key_at](size_t i) { return without_rank(key_at(i)); });
    }
  };

  explicit Tables(const Catalog& from) : catalog(from) {
    tensors.fill(from.tensors, [this](size_t i) { return tensor_key(i); });
    objects.fill(from.objects, [this](size_t i) { return object_key(i); });
    searches = std::make_unique<Search[]>(from.tensors.size());
  }

  const internal::ChunkSearch& search(size_t tensor) const {
    Search& own = searches[tensor];
    std::call_once(own.once, [&] {
      own.made = std::make_unique<const internal::ChunkSearch>(catalog, tensor);
    });
    return *own.made;
  }

  internal::EntryKey tensor_key(size_t i) const {
    return {catalog.tensor_name(i), catalog.tensors[i].rank};
  }
  internal::EntryKey object_key(size_t i) const {
    return {catalog.object_name(i), catalog.objects[i].rank};
  }

  const Catalog& catalog;
  NameTables tensors;
  NameTables objects;
  struct Search {
    std::once_flag once;
    std::unique_ptr<const internal::ChunkSearch> made;
  };
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
  return tables_->tensors.find(name, rank, [this](size_t i) { return tables_->tensor_key(i); });
}

int64_t CatalogIndex::find_object(std::string_view name, int32_t rank) const {
  return tables_->objects.find(name, rank, [this](size_t i) { return tables_->object_key(i); });
}

int64_t CatalogIndex::find_tensor_of_any(std::string_view name) const {
  return tables_->tensors.find_of_any(name, [this](size_t i) { return tables_->tensor_key(i); });
}

int64_t CatalogIndex::find_object_of_any(std::string_view name) const {
  return tables_->objects.find_of_any(name, [this](size_t i) { return tables_->object_key(i); });
}

const internal::ChunkSearch& CatalogIndex::search(size_t tensor) const {
  return tables_->search(tensor);
}

std::vector<uint64_t> CatalogIndex::chunks_meeting(size_t tensor, const Box& wanted) const {
  std::vector<uint64_t> chunks;
  // Dimensions that are not split are covered whole by every chunk: there a box meets all chunks
  // or, empty, none.
  if (box_is_empty(wanted)) return chunks;
  const internal::SplitDims split = internal::split_dims(catalog(), tensor);
  std::array<internal::Interval, kMaxTensorRank> region;
  for (uint32_t k = 0; k < split.count; ++k) {
    const int64_t begin = wanted.offsets[split.dims[k]];
    region[k] = {begin, begin + wanted.sizes[split.dims[k]]};
  }
  search(tensor).filling(region.data(), &chunks);
  return chunks;
}

}  // namespace shardwright::plan

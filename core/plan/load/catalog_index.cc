// SPDX-License-Identifier: Apache-2.0
//
// The tables behind CatalogIndex: two hash tables and a chunk search per tensor, built at once.
#include "core/plan/load/catalog_index.h"

#include "core/plan/entry_index_internal.h"
#include "core/plan/load_plan.h"
#include "core/plan/search/chunk_search_internal.h"

namespace shardwright::plan {

struct CatalogIndex::Tables {
  explicit Tables(const Catalog& from) : catalog(from) {
    tensors.reset(from.tensors.size());
    objects.reset(from.objects.size());
    searches.reserve(from.tensors.size());
    for (size_t t = 0; t < from.tensors.size(); ++t) {
      tensors.insert(tensor_key(t), t, [this](size_t i) { return tensor_key(i); });
      searches.emplace_back(from, t);
    }
    for (size_t i = 0; i < from.objects.size(); ++i) {
      objects.insert(object_key(i), i, [this](size_t k) { return object_key(k); });
    }
  }

  internal::EntryKey tensor_key(size_t i) const {
    return {catalog.tensor_name(i), catalog.tensors[i].rank};
  }
  internal::EntryKey object_key(size_t i) const {
    return {catalog.object_name(i), catalog.objects[i].rank};
  }

  const Catalog& catalog;
  internal::EntryIndex tensors;
  internal::EntryIndex objects;
  std::vector<internal::ChunkSearch> searches;  // one per tensor
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
  const auto key_at = [this](size_t i) { return tables_->tensor_key(i); };
  const int64_t own = rank < 0 ? -1 : tables_->tensors.find({name, rank}, key_at);
  return own >= 0 ? own : tables_->tensors.find({name, -1}, key_at);
}

int64_t CatalogIndex::find_object(std::string_view name, int32_t rank) const {
  const auto key_at = [this](size_t i) { return tables_->object_key(i); };
  const int64_t own = rank < 0 ? -1 : tables_->objects.find({name, rank}, key_at);
  return own >= 0 ? own : tables_->objects.find({name, -1}, key_at);
}

const internal::ChunkSearch& CatalogIndex::search(size_t tensor) const {
  return tables_->searches[tensor];
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

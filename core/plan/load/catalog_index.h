// SPDX-License-Identifier: Apache-2.0
//
// CatalogIndex: what a checkpoint stores, found by name and by box.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/layout/box.h"
#include "core/plan/catalog.h"

namespace shardwright::plan {

namespace internal {
class ChunkSearch;
}

// Index over stored entries, built once per checkpoint: (name, rank) to entry by a hash table,
// wanted box to chunks by arithmetic where the chunks of a tensor are a grid (rows included) and by
// bounding boxes where they are not. Names are indexed at once, the chunks of a tensor when they
// are first searched: at no cost where the catalog says that they are a grid, else O(n log n). Any
// thread; the catalog must outlive it.
class CatalogIndex {
 public:
  // The catalog passed check_catalog.
  explicit CatalogIndex(const Catalog& catalog);
  ~CatalogIndex();
  CatalogIndex(CatalogIndex&&) noexcept;
  CatalogIndex& operator=(CatalogIndex&&) noexcept;

  const Catalog& catalog() const;
  // Entry usable by rank: its own rank_local one, else the shared one; -1 when absent. Rank -1: the
  // shared one.
  int64_t find_tensor(std::string_view name, int32_t rank) const;
  int64_t find_object(std::string_view name, int32_t rank) const;
  // The shared entry of that name, else the rank_local one of the lowest rank; -1 when absent.
  int64_t find_tensor_of_any(std::string_view name) const;
  int64_t find_object_of_any(std::string_view name) const;
  // Chunks of tensor whose box has an element in common with the wanted box, in chunk order; of
  // copies the first one only.
  std::vector<uint64_t> chunks_meeting(size_t tensor, const Box& wanted) const;
  // DATA_LOSS unless the chunks that meet the box, which is not empty, fill it exactly once.
  Status prove_filled(size_t tensor, const Box& wanted, std::span<const uint64_t> meeting) const;
  // Valid as long as the index.
  const internal::ChunkSearch& search(size_t tensor) const;

 private:
  struct Tables;
  std::unique_ptr<const Tables> tables_;
};

}  // namespace shardwright::plan

// SPDX-License-Identifier: Apache-2.0
//
// ExtentOrder: what lies in each file of a manifest, by position. Building it proves that every
// extent lies between the file's header and its index and that no two overlap. Items below
// chunk_count are chunks, those above are objects. Immutable, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/format/native/manifest.h"
#include "core/plan/catalog.h"

namespace shardwright::format::native::internal {

// One stored thing: a chunk, or an object with number item - chunk_count.
struct StoredItem {
  uint32_t item = 0;
  uint64_t position = 0;
  uint64_t size_bytes = 0;
};

// Ascending position; equal positions (things without bytes) by size, kind and number of the thing.
void sort_by_position(std::vector<StoredItem>* items);

class ExtentOrder {
 public:
  ExtentOrder() = default;
  // DATA_LOSS naming the file, the thing and the offsets.
  static Result<ExtentOrder> create(const plan::Catalog& catalog,
                                    std::span<const ManifestFile> files);

  std::span<const StoredItem> items(uint32_t file) const {
    return std::span(items_).subspan(begins_[file], begins_[file + 1] - begins_[file]);
  }
  // Place of a thing among its file's items.
  uint32_t slot(size_t item) const { return slots_[item]; }

 private:
  std::vector<size_t> begins_;
  std::vector<StoredItem> items_;
  std::vector<uint32_t> slots_;
};

}  // namespace shardwright::format::native::internal

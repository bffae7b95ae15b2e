// SPDX-License-Identifier: Apache-2.0
//
// Chooses how the chunks of a tensor are searched.
#include "core/plan/search/chunk_search_internal.h"

#include <algorithm>
#include <utility>

namespace shardwright::plan::internal {
namespace {

constexpr uint64_t kFewChunks = 8;  // cheaper to look at than to index

}  // namespace

ChunkSearch::ChunkSearch(const Catalog& catalog, size_t tensor)
    : catalog_(&catalog), tensor_(tensor), split_count_(split_count(catalog.tensors[tensor])) {
  // Chunks without a split dimension are copies of the whole tensor: all of them meet what does.
  const TensorRecord& record = catalog.tensors[tensor];
  if (split_count_ == 0 || (record.chunk_count <= kFewChunks && !record.is_grid())) return;
  grid_ = ChunkGrid::find(catalog, tensor);
  if (grid_.has_value()) return;
  std::optional<ChunkRuns> runs = ChunkRuns::find(catalog, tensor);
  if (runs.has_value()) {
    runs_ = std::make_unique<const ChunkRuns>(*std::move(runs));
  } else {
    tree_ = std::make_unique<const ChunkTree>(catalog, tensor);
  }
}

void ChunkSearch::meeting(const Interval* region, std::vector<uint64_t>* out) const {
  out->clear();
  const TensorRecord& tensor = catalog_->tensors[tensor_];
  if (grid() != nullptr) {
    meeting_grid(region, out);
  } else if (runs_ != nullptr) {
    runs_->meeting(region, out);
    if (!runs_->in_order()) std::ranges::sort(*out);
  } else if (tree_ != nullptr) {
    tree_->meeting(region, out);
    std::ranges::sort(*out);
  } else {
    for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c) {
      if (chunk_meets(*catalog_, tensor, c, region)) out->push_back(c);
    }
  }
}

void ChunkSearch::meeting_grid(const Interval* region, std::vector<uint64_t>* out) const {
  const ChunkGrid& cells = *grid();
  const uint64_t base = catalog_->tensors[tensor_].chunk_begin;
  GridRange range;
  if (!cells.meeting(region, &range)) return;
  for_each_row(cells, range, [&](const auto&, uint64_t first, uint64_t end) {
    for (uint64_t cell = first; cell < end; ++cell) {
      if (!cells.has_copies()) {
        out->push_back(base + cells.first_chunk(cell));
        continue;
      }
      for (const uint32_t chunk : cells.copies(cell)) out->push_back(base + chunk);
    }
  });
  if (!cells.in_order()) std::ranges::sort(*out);
}

// Elements of the region in the chunk, in the split dimensions; 0 when they meet nowhere.
uint64_t ChunkSearch::common_elements(uint64_t chunk, const Interval* region) const {
  const TensorRecord& tensor = catalog_->tensors[tensor_];
  uint64_t elements = 1;
  for (uint32_t k = 0; k < split_count_; ++k) {
    const ExtentPair pair = chunk_pair(*catalog_, tensor, chunk, k);
    const int64_t begin = std::max(pair.offset, region[k].begin);
    const int64_t end = std::min(pair.offset + pair.size, region[k].end);
    if (end <= begin) return 0;
    elements *= static_cast<uint64_t>(end - begin);
  }
  return elements;
}

void ChunkSearch::filling(const Interval* region, std::vector<uint64_t>* out) const {
  meeting(region, out);
  uint64_t left = 1;  // elements of the region that no chunk was found for
  for (uint32_t k = 0; k < split_count_; ++k)
    left *= static_cast<uint64_t>(region[k].end - region[k].begin);
  bool copies = false;
  size_t kept = 0;
  for (const uint64_t chunk : *out) {
    const uint64_t elements = common_elements(chunk, region);
    if (elements == 0) continue;
    (*out)[kept++] = chunk;
    copies |= elements > left;
    left -= std::min(elements, left);
  }
  out->resize(kept);
  if (copies) drop_copies(out);
}

// Sorts the chunks by box, keeps the first of each, and sorts those by number.
void ChunkSearch::drop_copies(std::vector<uint64_t>* chunks) const {
  const TensorRecord& tensor = catalog_->tensors[tensor_];
  const auto compare = [&](uint64_t a, uint64_t b) {
    for (uint32_t k = 0; k < split_count_; ++k) {
      const ExtentPair first = chunk_pair(*catalog_, tensor, a, k);
      const ExtentPair second = chunk_pair(*catalog_, tensor, b, k);
      if (first.offset != second.offset) return first.offset < second.offset ? -1 : 1;
      if (first.size != second.size) return first.size < second.size ? -1 : 1;
    }
    return 0;
  };
  std::ranges::sort(*chunks, [&](uint64_t a, uint64_t b) {
    const int sign = compare(a, b);
    return sign != 0 ? sign < 0 : a < b;
  });
  const auto copies =
      std::ranges::unique(*chunks, [&](uint64_t a, uint64_t b) { return compare(a, b) == 0; });
  chunks->erase(copies.begin(), copies.end());
  std::ranges::sort(*chunks);
}

}  // namespace shardwright::plan::internal

// SPDX-License-Identifier: Apache-2.0
//
// Chooses how the chunks of a tensor are searched.
#include "core/plan/search/chunk_search_internal.h"

#include <algorithm>
#include <utility>

#include "core/plan/cover/cover_internal.h"

namespace shardwright::plan::internal {
namespace {

constexpr uint64_t kFewChunks = 8;  // cheaper to look at than to index
constexpr size_t kBoxesAhead = 8;   // boxes far apart that are on their way from memory

}  // namespace

ChunkSearch::ChunkSearch(const Catalog& catalog, size_t tensor)
    : catalog_(&catalog), tensor_(tensor), split_count_(split_count(catalog.tensors[tensor])) {
  // Chunks without a split dimension are copies of the whole tensor: all of them meet what does.
  const TensorRecord& record = catalog.tensors[tensor];
  if (split_count_ == 0 || (record.chunk_count <= kFewChunks && !record.is_grid())) return;
  grid_ = ChunkGrid::find(catalog, tensor);
  if (!grid_.has_value()) runs_ = ChunkRuns::find(catalog, tensor);
  if (!grid_.has_value() && !runs_.has_value()) tree_.emplace(catalog, tensor);
}

void ChunkSearch::meeting(const Interval* region, std::vector<uint64_t>* out) const {
  out->clear();
  const TensorRecord& tensor = catalog_->tensors[tensor_];
  if (grid() != nullptr) {
    meeting_grid(region, out);
  } else if (runs_.has_value()) {
    runs_->meeting(region, out);
    if (!runs_->in_order()) std::ranges::sort(*out);
  } else if (tree_.has_value()) {
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

// Elements of the region in the box that a tensor's chunk is, in the split dimensions; 0 when they
// meet nowhere.
uint64_t ChunkSearch::common_elements(uint64_t chunk, const Interval* region) const {
  const TensorRecord& tensor = catalog_->tensors[tensor_];
  uint64_t elements = 1;
  for (uint32_t k = 0; k < split_count_; ++k) {
    const ExtentPair own = box_pair(*catalog_, tensor, chunk, k);
    const Interval common = common_of({own.offset, own.offset + own.size}, region[k]);
    if (common.end <= common.begin) return 0;
    elements *= static_cast<uint64_t>(common.end - common.begin);
  }
  return elements;
}

void ChunkSearch::filling(const Interval* region, std::vector<uint64_t>* out) const {
  uint64_t left = 1;  // elements of the region that no chunk was found for
  for (uint32_t k = 0; k < split_count_; ++k)
    left *= static_cast<uint64_t>(region[k].end - region[k].begin);
  out->clear();
  if (left == 0) return;
  meeting(region, out);
  const TensorRecord& tensor = catalog_->tensors[tensor_];
  if (tensor.is_grid()) return;  // no cell is there twice
  bool copies = false;
  size_t kept = 0;
  for (size_t i = 0; i < out->size(); ++i) {
    const uint64_t chunk = (*out)[i];
    if (i + kBoxesAhead < out->size())
      __builtin_prefetch(&box_record(*catalog_, tensor, (*out)[i + kBoxesAhead]));
    const uint64_t elements = common_elements(chunk, region);
    if (elements == 0) continue;
    (*out)[kept++] = chunk;
    copies |= elements > left;
    left -= std::min(elements, left);
  }
  out->resize(kept);
  if (copies) *out = distinct_chunks(*catalog_, tensor_, *out);
}

// Chunks that tile the tensor are disjoint, which is linear to show; else each is looked up.
Status prove_disjoint(const Catalog& catalog, size_t tensor, std::string_view place_noun) {
  const TensorRecord& record = catalog.tensors[tensor];
  const SplitDims split = split_dims(catalog, tensor);
  if (record.chunk_count < 2 || chunks_tile(catalog, tensor, split)) return {};
  const auto is_empty = [&](uint64_t chunk) {
    return chunk_elements(catalog, record, split, chunk) == 0;
  };
  const ChunkSearch search(catalog, tensor);
  std::vector<uint64_t> met;
  for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c) {
    if (is_empty(c)) continue;
    search.meeting(chunk_region(catalog, record, c).data(), &met);
    for (const uint64_t other : met) {
      if (other != c && !is_empty(other))
        return overlap_status(catalog, tensor, c, other, place_noun);
    }
  }
  return {};
}

}  // namespace shardwright::plan::internal

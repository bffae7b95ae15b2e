// SPDX-License-Identifier: Apache-2.0
//
// Chooses how the chunks of a tensor are searched, and searches grids.
#include <algorithm>

#include "core/plan/load/chunk_search_internal.h"

namespace shardwright::plan::internal {
namespace {

constexpr uint64_t kFewChunks = 8;  // cheaper to look at than to index

bool chunk_meets(const Catalog& catalog, const TensorRecord& tensor, uint64_t chunk,
                 const Interval* region, uint32_t split_count) {
  for (uint32_t k = 0; k < split_count; ++k) {
    const ExtentPair pair = chunk_pair(catalog, tensor, chunk, k);
    if (std::max(pair.offset, region[k].begin) >= std::min(pair.offset + pair.size, region[k].end))
      return false;
  }
  return true;
}

}  // namespace

ChunkSearch::ChunkSearch(const Catalog& catalog, size_t tensor)
    : catalog_(&catalog), tensor_(tensor) {
  if (catalog.tensors[tensor].chunk_count <= kFewChunks) return;
  cuts_ = grid_cuts(catalog, tensor);
  if (cuts_.empty()) tree_.emplace_back(catalog, tensor);
}

std::vector<uint64_t> ChunkSearch::meeting(const Box& wanted) const {
  std::vector<uint64_t> found;
  const TensorRecord& tensor = catalog_->tensors[tensor_];
  // Dimensions that are not split are covered whole by every chunk: there a box meets all chunks
  // or, empty, none.
  if (box_is_empty(wanted)) return found;
  const SplitDims split = split_dims(*catalog_, tensor_);
  std::array<Interval, kMaxTensorRank> region;
  for (uint32_t k = 0; k < split.count; ++k) {
    const int64_t begin = wanted.offsets[split.dims[k]];
    region[k] = {begin, begin + wanted.sizes[split.dims[k]]};
  }
  if (!cuts_.empty()) {
    meeting_grid(region.data(), &found);
  } else if (!tree_.empty()) {
    tree_[0].meeting(region.data(), &found);
    std::sort(found.begin(), found.end());
  } else {
    for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c) {
      if (chunk_meets(*catalog_, tensor, c, region.data(), split.count)) found.push_back(c);
    }
  }
  return found;
}

void ChunkSearch::meeting_grid(const Interval* region, std::vector<uint64_t>* out) const {
  // Parts first[k] <= part < last[k] meet the region in dimension k.
  std::array<uint64_t, kMaxTensorRank> first;
  std::array<uint64_t, kMaxTensorRank> last;
  for (size_t k = 0; k < cuts_.size(); ++k) {
    const Cuts& cuts = cuts_[k];
    first[k] = static_cast<uint64_t>(std::upper_bound(cuts.begin(), cuts.end(), region[k].begin) -
                                     cuts.begin()) -
               1;
    last[k] = static_cast<uint64_t>(std::lower_bound(cuts.begin(), cuts.end(), region[k].end) -
                                    cuts.begin());
    if (first[k] >= last[k]) return;
  }
  std::array<uint64_t, kMaxTensorRank> part = first;
  const size_t innermost = cuts_.size() - 1;
  while (true) {
    uint64_t index = 0;
    for (size_t k = 0; k < cuts_.size(); ++k) index = index * cuts_[k].size() + part[k];
    const uint64_t begin = catalog_->tensors[tensor_].chunk_begin + index;
    for (uint64_t i = 0; i < last[innermost] - first[innermost]; ++i) out->push_back(begin + i);
    size_t k = innermost;
    while (k > 0 && ++part[k - 1] == last[k - 1]) {
      part[k - 1] = first[k - 1];
      --k;
    }
    if (k == 0) return;
  }
}

}  // namespace shardwright::plan::internal

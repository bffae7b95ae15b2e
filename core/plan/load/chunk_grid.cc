// SPDX-License-Identifier: Apache-2.0
//
// Recognises chunks that are a grid. The first chunk of a row-major grid changes its last offset
// fastest, so the cuts of dimension k are read along the chunks whose index is a multiple of the
// number of parts of all later dimensions; then every chunk is compared with what the cuts say.
#include "core/plan/load/chunk_search_internal.h"

namespace shardwright::plan::internal {
namespace {

// Reads cuts of dimension k at every stride-th chunk until the offset falls back or the chunks end.
Cuts read_cuts(const Catalog& catalog, const TensorRecord& tensor, uint32_t k, uint64_t stride) {
  Cuts cuts;
  for (uint64_t c = 0; c < tensor.chunk_count; c += stride) {
    const int64_t offset = chunk_pair(catalog, tensor, tensor.chunk_begin + c, k).offset;
    if (!cuts.empty() && offset <= cuts.back()) break;
    cuts.push_back(offset);
  }
  return cuts;
}

bool chunk_fits(const Catalog& catalog, const TensorRecord& tensor, const SplitDims& split,
                const std::vector<Cuts>& cuts, uint64_t c) {
  uint64_t rest = c;
  for (uint32_t k = split.count; k-- > 0;) {
    const uint64_t part = rest % cuts[k].size();
    rest /= cuts[k].size();
    const ExtentPair pair = chunk_pair(catalog, tensor, tensor.chunk_begin + c, k);
    const int64_t end = part + 1 < cuts[k].size() ? cuts[k][part + 1] : split.extents[k];
    if (pair.offset != cuts[k][part] || pair.offset + pair.size != end) return false;
  }
  return true;
}

}  // namespace

std::vector<Cuts> grid_cuts(const Catalog& catalog, size_t tensor_index) {
  const TensorRecord& tensor = catalog.tensors[tensor_index];
  const SplitDims split = split_dims(catalog, tensor_index);
  if (split.count == 0 || tensor.chunk_count == 0) return {};
  std::vector<Cuts> cuts(split.count);
  uint64_t stride = 1;
  for (uint32_t k = split.count; k-- > 0;) {
    cuts[k] = read_cuts(catalog, tensor, k, stride);
    if (cuts[k][0] != 0 || tensor.chunk_count % (stride * cuts[k].size()) != 0) return {};
    stride *= cuts[k].size();
  }
  if (stride != tensor.chunk_count) return {};
  for (uint64_t c = 0; c < tensor.chunk_count; ++c) {
    if (!chunk_fits(catalog, tensor, split, cuts, c)) return {};
  }
  return cuts;
}

}  // namespace shardwright::plan::internal

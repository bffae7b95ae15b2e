// SPDX-License-Identifier: Apache-2.0
//
// The write lists of all ranks: one pass over the catalog, in its order.
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {

void list_writes(const Owners& owners, GlobalSavePlan* plan) {
  std::vector<size_t> counts(plan->lists.size(), 0);
  for (const Holder& owner : owners.chunks) ++counts[owner.rank];
  for (const Holder& owner : owners.objects) ++counts[owner.rank];
  for (size_t r = 0; r < counts.size(); ++r) plan->lists[r].items.reserve(counts[r]);
  const auto list = [plan](const Holder& owner, uint64_t bytes) {
    plan->lists[owner.rank].items.push_back({owner.entry, owner.piece, bytes});
  };
  const Catalog& catalog = plan->catalog;
  for (size_t t = 0; t < catalog.tensors.size(); ++t) {
    const TensorRecord& tensor = catalog.tensors[t];
    const SplitDims split = split_dims(catalog, t);
    const auto bits = static_cast<uint64_t>(dtype_bits(tensor.dtype));
    for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c)
      list(owners.chunks[c], packed_bytes(bits, chunk_elements(catalog, tensor, split, c)));
  }
  for (size_t i = 0; i < owners.objects.size(); ++i)
    list(owners.objects[i], catalog.objects[i].size_bytes);
}

}  // namespace shardwright::plan::internal

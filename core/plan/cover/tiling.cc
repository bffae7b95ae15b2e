// SPDX-License-Identifier: Apache-2.0
//
// Whether chunks tile a tensor, and which of them are copies of others.
#include <algorithm>
#include <ranges>
#include <span>

#include <xxhash.h>

#include "core/base/hash_index.h"
#include "core/plan/cover/cover_internal.h"

namespace shardwright::plan::internal {
namespace {

// One split dimension in ascending order, the common case of row shards: plain arithmetic.
bool rows_tile(const Catalog& catalog, const TensorRecord& tensor, int64_t extent) {
  int64_t expected = 0;
  for (const ChunkRecord& chunk :
       std::span(catalog.boxes).subspan(tensor.box_begin, tensor.chunk_count)) {
    if (chunk.size0 == 0) continue;
    if (chunk.offset0 != expected) return false;
    expected += chunk.size0;
  }
  return expected == extent;
}

bool is_empty(const SplitDims& split) {
  for (uint32_t k = 0; k < split.count; ++k) {
    if (split.extents[k] == 0) return true;
  }
  return split.unsplit_elements == 0;
}

// Whether the chunks of a range, which are boxes, tile the tensor.
template <typename Chunks>
bool sums_agree(const Catalog& catalog, const TensorRecord& tensor, const SplitDims& split,
                const Chunks& chunks) {
  const ExtentPair* const more = catalog.more.data() + tensor.more_begin;
  CornerTotal total(split.count);
  Region box;
  for (const uint64_t chunk : chunks) {
    // As chunk_interval says, which asks of each dimension what is known of the tensor.
    const ChunkRecord& record = box_record(catalog, tensor, chunk);
    box[0] = {record.offset0, record.offset0 + record.size0};
    box[1] = {record.offset1, record.offset1 + record.size1};
    for (uint32_t k = 2; k < split.count; ++k) {
      const ExtentPair& pair = more[(chunk - tensor.chunk_begin) * (split.count - 2) + (k - 2)];
      box[k] = {pair.offset, pair.offset + pair.size};
    }
    total.add(box.data());
  }
  return total.sum() == box_corner_sum({whole_region(split).data(), split.count});
}

}  // namespace

bool chunks_tile(const Catalog& catalog, size_t tensor_index, const SplitDims& split) {
  const TensorRecord& tensor = catalog.tensors[tensor_index];
  if (is_empty(split)) return true;
  if (tensor.is_grid()) return true;  // all combinations of parts that fill their dimensions
  if (split.count == 0) return tensor.chunk_count == 1;
  if (split.count == 1 && rows_tile(catalog, tensor, split.extents[0])) return true;
  const uint64_t end = tensor.chunk_begin + tensor.chunk_count;
  return sums_agree(catalog, tensor, split, std::views::iota(tensor.chunk_begin, end));
}

bool chunks_tile(const Catalog& catalog, size_t tensor_index, const SplitDims& split,
                 std::span<const uint64_t> chunks) {
  return is_empty(split) || sums_agree(catalog, catalog.tensors[tensor_index], split, chunks);
}

std::vector<uint64_t> distinct_chunks(const Catalog& catalog, size_t tensor_index,
                                      std::span<const uint64_t> chunks) {
  const TensorRecord& tensor = catalog.tensors[tensor_index];
  const uint32_t count = split_count(tensor);
  std::vector<uint64_t> distinct;
  std::vector<uint64_t> hashes;
  HashIndex index;
  for (const uint64_t c : chunks) {
    const Region box = chunk_region(catalog, tensor, c);
    const uint64_t hash = XXH3_64bits(box.data(), count * sizeof(Interval));
    const auto is_equal = [&](size_t position) {
      const Region other = chunk_region(catalog, tensor, distinct[position]);
      return std::equal(box.begin(), box.begin() + count, other.begin());
    };
    if (index.find(hash, is_equal).has_value()) continue;
    index.reserve(distinct.size() + 1, [&](size_t position) { return hashes[position]; });
    index.insert(hash, distinct.size());
    distinct.push_back(c);
    hashes.push_back(hash);
  }
  return distinct;
}

}  // namespace shardwright::plan::internal

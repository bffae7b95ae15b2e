// SPDX-License-Identifier: Apache-2.0
//
// Whether chunks tile a tensor, and which of them are copies of others.
#include <numeric>
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

// Intervals of boxes in the split dimensions, read straight from the columns.
class ChunkIntervals {
 public:
  ChunkIntervals(const Catalog& catalog, const TensorRecord& tensor, uint32_t split_count)
      : boxes_(catalog.boxes.data() + tensor.box_begin),
        more_(catalog.more.data() + tensor.more_begin),
        chunk_begin_(tensor.chunk_begin),
        split_count_(split_count) {}

  const Interval* at(uint64_t chunk) {
    const ChunkRecord& record = boxes_[chunk - chunk_begin_];
    box_[0] = {record.offset0, record.offset0 + record.size0};
    box_[1] = {record.offset1, record.offset1 + record.size1};
    for (uint32_t k = 2; k < split_count_; ++k) {
      const ExtentPair& pair = more_[(chunk - chunk_begin_) * (split_count_ - 2) + (k - 2)];
      box_[k] = {pair.offset, pair.offset + pair.size};
    }
    return box_.data();
  }

 private:
  const ChunkRecord* boxes_;
  const ExtentPair* more_;
  uint64_t chunk_begin_;
  uint32_t split_count_;
  std::array<Interval, kMaxTensorRank> box_;
};

bool is_empty(const SplitDims& split) {
  for (uint32_t k = 0; k < split.count; ++k) {
    if (split.extents[k] == 0) return true;
  }
  return split.unsplit_elements == 0;
}

CornerSum whole_sum(const SplitDims& split) {
  std::array<Interval, kMaxTensorRank> whole;
  for (uint32_t k = 0; k < split.count; ++k) whole[k] = {0, split.extents[k]};
  return box_corner_sum({whole.data(), split.count});
}

}  // namespace

bool chunks_tile(const Catalog& catalog, size_t tensor_index, const SplitDims& split) {
  const TensorRecord& tensor = catalog.tensors[tensor_index];
  if (is_empty(split)) return true;
  if (tensor.is_grid()) return true;  // all combinations of parts that fill their dimensions
  if (split.count == 0) return tensor.chunk_count == 1;
  if (split.count == 1 && rows_tile(catalog, tensor, split.extents[0])) return true;
  ChunkIntervals intervals(catalog, tensor, split.count);
  CornerTotal total(split.count);
  for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c) {
    total.add(intervals.at(c));
  }
  return total.sum() == whole_sum(split);
}

bool chunks_tile(const Catalog& catalog, size_t tensor_index, const SplitDims& split,
                 std::span<const uint64_t> chunks) {
  if (is_empty(split)) return true;
  ChunkIntervals intervals(catalog, catalog.tensors[tensor_index], split.count);
  CornerTotal total(split.count);
  for (const uint64_t chunk : chunks) total.add(intervals.at(chunk));
  return total.sum() == whole_sum(split);
}

std::vector<uint64_t> distinct_chunks(const Catalog& catalog, size_t tensor_index) {
  const TensorRecord& tensor = catalog.tensors[tensor_index];
  const uint32_t count = split_count(tensor);
  std::vector<uint64_t> distinct;
  if (tensor.is_grid()) {
    distinct.resize(tensor.chunk_count);
    std::iota(distinct.begin(), distinct.end(), tensor.chunk_begin);
    return distinct;
  }
  ChunkIntervals intervals(catalog, tensor, count);
  std::vector<uint64_t> hashes;
  HashIndex index;
  for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c) {
    const uint64_t hash = XXH3_64bits(intervals.at(c), count * sizeof(Interval));
    const auto is_equal = [&](size_t position) {
      for (uint32_t k = 0; k < count; ++k) {
        const ExtentPair a = chunk_pair(catalog, tensor, c, k);
        const ExtentPair b = chunk_pair(catalog, tensor, distinct[position], k);
        if (a.offset != b.offset || a.size != b.size) return false;
      }
      return true;
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

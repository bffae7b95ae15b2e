// SPDX-License-Identifier: Apache-2.0
//
// Which digest blocks of a chunk hold a byte of a wanted box. From the innermost dimension
// outwards, steps whose gap is smaller than a block join to one span, for no block fits into such a
// gap; where a gap is larger, spans are looked at one by one, and there are at most as many as
// blocks.
#include <algorithm>

#include "core/estimate/estimate_internal.h"

namespace shardwright::estimate::internal {
namespace {

// One step outwards: `count` spans that begin `stride` bytes apart.
struct Step {
  uint64_t count = 1;
  uint64_t stride = 0;
};

class BlockCount {
 public:
  BlockCount(uint64_t block_bytes, uint64_t chunk_bytes, std::vector<BlockRange>* blocks)
      : block_bytes_(block_bytes), chunk_bytes_(chunk_bytes), blocks_(blocks) {}

  // Spans of `length` bytes from `begin` on, repeated by the steps, outermost first. Ascending.
  void add(uint64_t begin, std::span<const Step> steps, uint64_t length) {
    if (!steps.empty()) {
      for (uint64_t i = 0; i < steps[0].count; ++i)
        add(begin + i * steps[0].stride, steps.subspan(1), length);
      return;
    }
    const uint64_t first = std::max(begin / block_bytes_, next_);
    next_ = std::max(next_, (begin + length - 1) / block_bytes_ + 1);
    if (next_ > first) {
      const uint64_t end = std::min(next_ * block_bytes_, chunk_bytes_);
      bytes_ += end - first * block_bytes_;
      note(first);
    }
  }
  uint64_t bytes() const { return bytes_; }

 private:
  void note(uint64_t first) {
    if (blocks_ == nullptr) return;
    if (!blocks_->empty() && blocks_->back().end == first) {
      blocks_->back().end = next_;
    } else {
      blocks_->push_back({first, next_});
    }
  }

  uint64_t block_bytes_;
  uint64_t chunk_bytes_;
  std::vector<BlockRange>* blocks_;
  uint64_t next_ = 0;  // first block that was not counted
  uint64_t bytes_ = 0;
};

}  // namespace

Fetch fetch_of(DType dtype, const Box& chunk, const Box& wanted, uint64_t block_bytes,
               std::vector<BlockRange>* blocks) {
  Fetch fetch;
  fetch.wanted_bytes = box_bytes(dtype, wanted);
  const uint64_t chunk_bytes = box_bytes(dtype, chunk);
  fetch.fetched_bytes = fetch.wanted_bytes;
  if (block_bytes == 0) return fetch;
  if (chunk_bytes <= block_bytes || wanted == chunk) {
    fetch.fetched_bytes = chunk_bytes;
    if (blocks != nullptr) blocks->push_back({0, (chunk_bytes + block_bytes - 1) / block_bytes});
    return fetch;
  }
  const auto bits = static_cast<uint64_t>(dtype_bits(dtype));
  uint64_t stride_bits = bits;  // of the dimension at hand
  uint64_t begin_bits = 0;
  uint64_t length = bits;   // of the joined span, in bits until the end
  std::vector<Step> steps;  // innermost first
  for (size_t d = chunk.sizes.size(); d > 0; --d) {
    const auto size = static_cast<uint64_t>(wanted.sizes[d - 1]);
    begin_bits += static_cast<uint64_t>(wanted.offsets[d - 1] - chunk.offsets[d - 1]) * stride_bits;
    const uint64_t gap_bits = stride_bits - std::min(length, stride_bits);
    if (size > 1 && steps.empty() && gap_bits < block_bytes * 8) {
      length += (size - 1) * stride_bits;
    } else if (size > 1) {
      steps.push_back({size, stride_bits / 8});
    }
    stride_bits *= static_cast<uint64_t>(chunk.sizes[d - 1]);
  }
  std::ranges::reverse(steps);
  BlockCount count(block_bytes, chunk_bytes, blocks);
  count.add(begin_bits / 8, steps, (length + 7) / 8);
  fetch.fetched_bytes = count.bytes();
  return fetch;
}

}  // namespace shardwright::estimate::internal

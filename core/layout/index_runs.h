// SPDX-License-Identifier: Apache-2.0
//
// Ranges and runs of indices along one dimension, and the rule that cuts them into parts: that of
// torch.chunk (2.x), parts of ceil(size / parts) indices in order, the last ones short or empty.
// Value types, pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardwright {

struct IndexRange {
  int64_t begin = 0;
  int64_t size = 0;
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

// The given one of `parts` (at most kMaxWorldSize) parts of the range. An empty part lies at its end.
IndexRange chunk_of(const IndexRange& range, int64_t parts, int64_t part);

// Ascending indices of one dimension, as few runs as possible.
class IndexRuns {
 public:
  explicit IndexRuns(int64_t extent);  // all indices below extent

  std::span<const IndexRange> runs() const { return runs_; }
  int64_t size() const { return size_; }  // number of indices

  // Keeps one part. With a factor of 1 the indices are cut as chunk_of cuts them; with a factor f
  // they are first cut into f parts, and the part is what chunk_of gives of each of these, one after
  // the other (StridedShard of torch.distributed.tensor 2.x). O(factor + runs).
  void keep_part(int64_t parts, int64_t part, int64_t factor);

 private:
  std::vector<IndexRange> runs_;  // none is empty or touches the next
  int64_t size_ = 0;
};

}  // namespace shardwright

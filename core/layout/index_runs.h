// SPDX-License-Identifier: Apache-2.0
//
// IndexRuns: ascending indices of one dimension, of which a rank keeps its part. Value; pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/layout/index_range.h"

namespace shardwright {

// As few runs as possible.
class IndexRuns {
 public:
  explicit IndexRuns(int64_t extent);  // all indices below extent

  std::span<const IndexRange> runs() const { return runs_; }
  int64_t size() const { return size_; }  // number of indices

  // Keeps one part. With a factor of 1 the indices are cut as chunk_of cuts them; with a factor f
  // they are first cut into f parts, and the part is what chunk_of gives of each of these, one
  // after the other (StridedShard of torch.distributed.tensor 2.x). O(factor + runs).
  void keep_part(int64_t parts, int64_t part, int64_t factor);

 private:
  std::vector<IndexRange> runs_;  // none is empty or touches the next
  int64_t size_ = 0;
};

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "core/layout/index_runs.h"

#include <algorithm>
#include <utility>

namespace shardwright {
namespace {

// Copies slices of a list of indices, whose positions ascend from call to call.
class Slicer {
 public:
  explicit Slicer(std::span<const IndexRange> runs) : runs_(runs) {}

  // Appends the indices at the positions of the slice, joined to the run before where they touch.
  void append(IndexRange slice, std::vector<IndexRange>* out) {
    while (slice.size > 0) {
      while (slice.begin - passed_ >= runs_[run_].size) passed_ += runs_[run_++].size;
      const int64_t skipped = slice.begin - passed_;
      const IndexRange taken = {runs_[run_].begin + skipped,
                                std::min(runs_[run_].size - skipped, slice.size)};
      if (!out->empty() && out->back().begin + out->back().size == taken.begin) {
        out->back().size += taken.size;
      } else {
        out->push_back(taken);
      }
      slice.begin += taken.size;
      slice.size -= taken.size;
    }
  }

 private:
  std::span<const IndexRange> runs_;
  size_t run_ = 0;
  int64_t passed_ = 0;  // indices in the runs before run_
};

}  // namespace

IndexRuns::IndexRuns(int64_t extent) : size_(extent) {
  if (extent > 0) runs_.push_back({0, extent});
}

void IndexRuns::keep_part(int64_t parts, int64_t part, int64_t factor) {
  const int64_t step = chunk_parts(size_, factor).step;
  std::vector<IndexRange> kept;
  Slicer slicer(runs_);
  int64_t kept_size = 0;
  for (int64_t left = size_; left > 0; left -= std::min(step, left)) {
    const IndexRange taken = chunk_of({size_ - left, std::min(step, left)}, parts, part);
    slicer.append(taken, &kept);
    kept_size += taken.size;
  }
  runs_ = std::move(kept);
  size_ = kept_size;
}

}  // namespace shardwright

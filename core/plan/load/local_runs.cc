// SPDX-License-Identifier: Apache-2.0
//
// Where the boxes of one entry lie in its local tensor. Boxes that share memory are harmless in a
// save, which only reads them; a load would fill one and overwrite it with the next.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/plan/load/match_internal.h"
#include "core/tensor/dims.h"

namespace shardwright::plan::internal {
namespace {

// Elements of the local tensor that a piece takes, in row-major order. The state has checked that
// they lie inside it.
struct Run {
  int64_t begin = 0;
  int64_t end = 0;
  size_t piece = 0;
};

Status runs_overlap(const TensorRef& wanted, const Run& first, const Run& second) {
  return invalid_argument(
             fmt::format("boxes {} and {} of tensor '{}' share elements {} to {} of the local "
                         "tensor, so loading one would overwrite the other; give each memory of "
                         "its own",
                         box_text(wanted.pieces[first.piece].box),
                         box_text(wanted.pieces[second.piece].box), escape_text(wanted.name),
                         second.begin, std::min(first.end, second.end) - 1))
      .with_detail("tensor", wanted.name)
      .with_detail("box", box_text(wanted.pieces[second.piece].box));
}

}  // namespace

Status check_local_runs_apart(const TensorRef& wanted) {
  if (wanted.pieces.size() < 2) return {};
  std::vector<Run> runs;
  for (size_t p = 0; p < wanted.pieces.size(); ++p) {
    const int64_t begin = wanted.pieces.local_offset(p);
    const int64_t count = element_count_of(wanted.pieces.sizes(p));
    if (count > 0) runs.push_back({begin, begin + count, p});
  }
  const auto before = [](const Run& a, const Run& b) { return a.begin < b.begin; };
  if (!std::ranges::is_sorted(runs, before)) std::ranges::stable_sort(runs, before);
  for (size_t i = 1; i < runs.size(); ++i) {
    if (runs[i].begin < runs[i - 1].end) return runs_overlap(wanted, runs[i - 1], runs[i]);
  }
  return {};
}

}  // namespace shardwright::plan::internal

// SPDX-License-Identifier: Apache-2.0
//
// Where the boxes of one entry lie in its local tensor. Boxes that share memory are harmless in a
// save, which only reads them; a load would fill one and overwrite it with the next.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/layout/overlap.h"
#include "core/plan/load/match_internal.h"
#include "core/state/piece_place.h"
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

// `shared` says which elements of the local tensor both boxes take.
Status pieces_overlap(const TensorRef& wanted, size_t first, size_t second,
                      const std::string& shared) {
  const std::string box = box_text(wanted.pieces[second].box);
  return invalid_argument(
             fmt::format("boxes {} and {} of tensor '{}' share {} of the local tensor, "
                         "so loading one would overwrite the other; give each memory "
                         "of its own",
                         box_text(wanted.pieces[first].box), box, escape_text(wanted.name), shared))
      .with_detail("tensor", wanted.name)
      .with_detail("box", box);
}

// Whether the elements of a window follow one another in a tensor of this shape.
bool is_run(const Box& window, std::span<const int64_t> shape) {
  size_t d = shape.size();
  while (d > 0 && window.sizes[d - 1] == shape[d - 1]) --d;
  return std::all_of(window.sizes.begin(), window.sizes.begin() + (d > 0 ? d - 1 : 0),
                     [](int64_t extent) { return extent == 1; });
}

Status check_windows_apart(const TensorRef& wanted, const std::vector<Box>& windows) {
  const auto found = find_overlap(windows);
  if (!found.has_value()) return {};
  const auto [first, second] = *found;
  return pieces_overlap(wanted, first, second,
                        "the window " + box_text(intersect(windows[first], windows[second])));
}

}  // namespace

Status check_local_runs_apart(const TensorRef& wanted) {
  if (wanted.pieces.size() < 2) return {};
  if (place_of_pieces(wanted) == PiecePlace::kWindow) {
    std::vector<Box> windows;
    windows.reserve(wanted.pieces.size());
    for (size_t p = 0; p < wanted.pieces.size(); ++p) windows.push_back(local_window(wanted, p));
    const auto runs = [&](const Box& window) { return is_run(window, wanted.local.shape); };
    if (!std::ranges::all_of(windows, runs)) return check_windows_apart(wanted, windows);
  }
  std::vector<Run> runs;
  for (size_t p = 0; p < wanted.pieces.size(); ++p) {
    const int64_t begin = wanted.pieces.local_offset(p);
    const int64_t count = element_count_of(wanted.pieces.sizes(p));
    if (count > 0) runs.push_back({begin, begin + count, p});
  }
  const auto before = [](const Run& a, const Run& b) { return a.begin < b.begin; };
  if (!std::ranges::is_sorted(runs, before)) std::ranges::stable_sort(runs, before);
  for (size_t i = 1; i < runs.size(); ++i) {
    const Run& before_it = runs[i - 1];
    if (runs[i].begin >= before_it.end) continue;
    return pieces_overlap(
        wanted, before_it.piece, runs[i].piece,
        fmt::format("elements {} to {}", runs[i].begin, std::min(before_it.end, runs[i].end) - 1));
  }
  return {};
}

}  // namespace shardwright::plan::internal

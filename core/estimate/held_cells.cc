// SPDX-License-Identifier: Apache-2.0
//
// The distinct boxes of a layout, found rank by rank: neighbours mostly hold the same box or a new
// one, so the search tree is rarely asked.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/estimate/estimate_internal.h"

namespace shardwright::estimate::internal {
namespace {

// Numbers of boxes in order of first appearance.
class BoxNumbers {
 public:
  explicit BoxNumbers(std::vector<Box>* boxes) : boxes_(boxes) {}
  uint32_t number_of(const Box& box) {
    if (!boxes_->empty() && boxes_->back() == box) return static_cast<uint32_t>(boxes_->size() - 1);
    const auto [at, added] = numbers_.emplace(box, static_cast<uint32_t>(boxes_->size()));
    if (added) boxes_->push_back(box);
    return at->second;
  }

 private:
  std::vector<Box>* boxes_;
  std::map<Box, uint32_t> numbers_;
};

Result<HeldCells> cells_of_layout(const Layout& layout, std::span<const int64_t> shape) {
  HeldCells made;
  made.ranks = layout_ranks(layout);
  made.cell_begins.push_back(0);
  BoxNumbers numbers(&made.boxes);
  for (const int32_t rank : made.ranks) {
    SHW_ASSIGN_OR_RETURN(const std::vector<Piece> pieces, layout.pieces(shape, rank));
    // Ranks hold about as much as each other: what will be too much is not made first.
    if (pieces.size() > kMaxSimulatedPieces / made.ranks.size()) return too_many_pieces();
    for (const Piece& piece : pieces) {
      if (!box_is_empty(piece.box)) made.cells.push_back(numbers.number_of(piece.box));
    }
    made.cell_begins.push_back(made.cells.size());
  }
  return made;
}

HeldCells cells_of_boxes(const JobTensor& tensor) {
  HeldCells made;
  BoxNumbers numbers(&made.boxes);
  std::vector<std::pair<int32_t, uint32_t>> held;  // rank, box
  for (const HeldBox& each : tensor.boxes) {
    if (box_is_empty(each.box)) continue;
    const uint32_t number = numbers.number_of(each.box);
    for (const int32_t rank : each.ranks) held.emplace_back(rank, number);
  }
  std::ranges::stable_sort(held, {}, [](const auto& pair) { return pair.first; });
  for (const auto& [rank, number] : held) {
    if (made.ranks.empty() || made.ranks.back() != rank) {
      made.ranks.push_back(rank);
      made.cell_begins.push_back(made.cells.size());
    }
    made.cells.push_back(number);
  }
  made.cell_begins.push_back(made.cells.size());
  return made;
}

}  // namespace

Status check_held_bytes(const JobTensor& tensor, const HeldCells& cells) {
  if (!dtype_is_subbyte(tensor.dtype)) return {};
  for (const Box& box : cells.boxes) {
    const size_t dimensions = box.sizes.size();
    if (dimensions != 0 && dtype_fills_bytes(tensor.dtype, box.offsets[dimensions - 1]) &&
        dtype_fills_bytes(tensor.dtype, box.sizes[dimensions - 1])) {
      continue;
    }
    const std::string text = box_text(box);
    return unimplemented(
               fmt::format("tensor '{}': the box {} of dtype {} does not begin and end on "
                           "whole bytes, so no rank can hold it",
                           escape_text(tensor.name), text, dtype_name(tensor.dtype)))
        .with_detail("tensor", tensor.name)
        .with_detail("box", text);
  }
  return {};
}

Result<const HeldCells*> HeldCellsCache::of(const JobTensor& tensor) {
  const HeldCells* cells = &boxes_;
  if (tensor.layout == kHeldByBoxes) {
    boxes_ = cells_of_boxes(tensor);
  } else {
    SHW_ASSIGN_OR_RETURN(cells, of_layout(tensor));
  }
  SHW_RETURN_IF_ERROR(check_held_bytes(tensor, *cells));
  return cells;
}

Result<const HeldCells*> HeldCellsCache::of_layout(const JobTensor& tensor) {
  const std::pair<uint32_t, Dims> key{tensor.layout, tensor.shape};
  auto found = kept_.find(key);
  if (found == kept_.end()) {
    SHW_ASSIGN_OR_RETURN(HeldCells made,
                         cells_of_layout(*job_.layouts[tensor.layout].layout, tensor.shape));
    found = kept_.emplace(key, std::move(made)).first;
  }
  return &found->second;
}

}  // namespace shardwright::estimate::internal

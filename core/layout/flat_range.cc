// SPDX-License-Identifier: Apache-2.0
#include "core/layout/flat_range.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/checked.h"

namespace shardwright {
namespace {

class FlatCutter {
 public:
  FlatCutter(const Box& box, std::vector<Piece>* out) : box_(box), current_(box), out_(out) {}

  // Appends elements [begin, end), begin < end, of the dimensions from d on; the outer ones hold
  // one index each.
  void append(size_t d, int64_t begin, int64_t end) {
    const auto inner_sizes = box_.sizes.span().subspan(std::min(d + 1, box_.sizes.size()));
    const int64_t row = element_count_of(inner_sizes);
    if (begin % row == 0 && end % row == 0) return append_rows(d, begin / row, end / row);
    int64_t first = begin / row;
    const int64_t last = end / row;
    if (begin % row != 0) {
      append_part_of_row(d, first, begin % row, std::min(row, end - first * row));
      ++first;
    }
    if (first < last) append_rows(d, first, last);
    if (first <= last && end % row != 0) append_part_of_row(d, last, 0, end % row);
  }

 private:
  void append_part_of_row(size_t d, int64_t index, int64_t begin, int64_t end) {
    current_.offsets[d] = box_.offsets[d] + index;
    current_.sizes[d] = 1;
    append(d + 1, begin, end);
  }

  void append_rows(size_t d, int64_t first, int64_t last) {
    Piece piece{current_, taken_};
    if (d < box_.sizes.size()) {
      piece.box.offsets[d] = box_.offsets[d] + first;
      piece.box.sizes[d] = last - first;
    }
    for (size_t inner = d + 1; inner < box_.sizes.size(); ++inner) {
      piece.box.offsets[inner] = box_.offsets[inner];
      piece.box.sizes[inner] = box_.sizes[inner];
    }
    taken_ += box_element_count(piece.box);
    out_->push_back(std::move(piece));
  }

  const Box& box_;
  Box current_;  // its dimensions above the one in work hold one index
  std::vector<Piece>* out_;
  int64_t taken_ = 0;  // elements appended so far
};

}  // namespace

void append_flat_range(const Box& box, IndexRange range, std::vector<Piece>* out) {
  if (range.size > 0) FlatCutter(box, out).append(0, range.begin, range.begin + range.size);
}

Result<std::vector<Piece>> flat_range_pieces(const Box& box, IndexRange range) {
  SHW_ASSIGN_OR_RETURN(const int64_t count, checked_element_count(box.sizes));
  if (range.begin < 0 || range.size < 0) {
    return invalid_argument(
        fmt::format("a flat range of {} elements from {}", range.size, range.begin));
  }
  if (range.begin > count || range.size > count - range.begin) {
    return out_of_range(fmt::format("the flat range of {} elements from {} leaves a box of {}",
                                    range.size, range.begin, count));
  }
  std::vector<Piece> pieces;
  append_flat_range(box, range, &pieces);
  return pieces;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "core/exec/view_reads_internal.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/layout/flat_range.h"

namespace shardwright::exec::internal {
namespace {

// Of the memory of a read, in elements.
Dims strides_of(const BoxRead& read) {
  if (!read.target.strides.empty()) return read.target.strides;
  Dims strides(read.box.sizes.size(), 1);
  for (size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * read.box.sizes[d];
  return strides;
}

// The first element of the memory of a read that is at this place of it.
std::byte* memory_at(const BoxRead& read, const Dims& strides, const Dims& at) {
  int64_t element = 0;
  for (size_t d = 0; d < strides.size(); ++d) element += (at[d] - read.box.offsets[d]) * strides[d];
  return read.target.data + element * static_cast<int64_t>(dtype_bits(read.target.dtype)) / 8;
}

// The reads of a box that lies in a run: whole rows at once as far as rows of the box are rows of
// the piece and of the memory.
class RunReads {
 public:
  RunReads(const ViewPiece& piece, const Box& part, const BoxRead& read)
      : piece_(piece), part_(part), read_(read), strides_(strides_of(read)) {}

  void add_to(std::vector<BoxRead>* reads) const {
    size_t joined = part_.sizes.size();  // dimensions from here on are one run
    int64_t length = 1;
    while (joined > 0) {
      const size_t d = joined - 1;
      if (part_.sizes[d] != 1 && strides_[d] != length) break;
      length *= part_.sizes[d];
      joined = d;
      if (part_.sizes[d] != piece_.box.sizes[d]) break;
    }
    Dims at = part_.offsets;
    while (true) {
      reads->push_back(run_at(at, length));
      size_t d = joined;
      for (; d > 0; --d) {
        if (++at[d - 1] < part_.offsets[d - 1] + part_.sizes[d - 1]) break;
        at[d - 1] = part_.offsets[d - 1];
      }
      if (d == 0) return;
    }
  }

 private:
  BoxRead run_at(const Dims& at, int64_t length) const {
    int64_t element = 0;  // of the piece
    for (size_t d = 0; d < at.size(); ++d)
      element = element * piece_.box.sizes[d] + (at[d] - piece_.box.offsets[d]);
    BoxRead run;
    run.tensor = piece_.tensor;
    run.box = {{piece_.offsets[0] + element}, {length}};
    run.target = read_.target;
    run.target.data = memory_at(read_, strides_, at);
    run.target.shape = {length};
    run.target.strides = {};
    return run;
  }

  const ViewPiece& piece_;
  const Box& part_;
  const BoxRead& read_;
  const Dims strides_;
};

Dims without_ones(const Dims& sizes) {
  std::vector<int64_t> kept;
  std::ranges::copy_if(sizes, std::back_inserter(kept), [](int64_t size) { return size != 1; });
  return Dims(kept);
}

// The read of a box that lies in a box of the source, which may have other dimensions of 1.
BoxRead read_of_box(const ViewPiece& piece, const Box& part, const BoxRead& read) {
  const TensorView memory = memory_of(read, part);
  BoxRead below{piece.tensor, {piece.offsets, sizes_in_source(piece)}, memory};
  const size_t rank = below.box.sizes.size();
  below.target.strides = Dims(rank, 1);
  size_t d = part.sizes.size();  // of the view
  for (size_t e = rank; e-- > 0;) {
    if (below.box.sizes[e] == 1) {
      if (e + 1 < rank)
        below.target.strides[e] = below.target.strides[e + 1] * below.box.sizes[e + 1];
      continue;
    }
    do --d;
    while (piece.box.sizes[d] == 1);
    below.box.offsets[e] += part.offsets[d] - piece.box.offsets[d];
    below.box.sizes[e] = part.sizes[d];
    below.target.strides[e] = memory.strides[d];
  }
  below.target.shape = below.box.sizes;
  return below;
}

// The reads of what a read wants of the elements of a box in a row: one for each box that they are.
void add_reads_in_a_row(const ViewPiece& piece, const Box& part, const BoxRead& read,
                        std::vector<BoxRead>* reads) {
  std::vector<Piece> boxes;
  append_flat_range({piece.offsets, piece.sizes},
                    {part.offsets[0] - piece.box.offsets[0], part.sizes[0]}, &boxes);
  for (Piece& each : boxes) {
    const int64_t element = part.offsets[0] - read.box.offsets[0] + each.local_offset_elements;
    BoxRead& below = reads->emplace_back();
    below.tensor = piece.tensor;
    below.target = read.target;
    below.target.data += element * static_cast<int64_t>(dtype_bits(read.target.dtype)) / 8;
    below.target.shape = each.box.sizes;
    below.target.strides = {};
    below.box = std::move(each.box);
  }
}

}  // namespace

TensorView memory_of(const BoxRead& read, const Box& part) {
  TensorView view = read.target;
  view.strides = strides_of(read);
  view.data = memory_at(read, view.strides, part.offsets);
  view.shape = part.sizes;
  return view;
}

const Dims& sizes_in_source(const ViewPiece& piece) {
  return piece.sizes.empty() ? piece.box.sizes : piece.sizes;
}

bool has_same_dimensions(const ViewPiece& piece) {
  return piece.sizes.empty() || without_ones(piece.sizes) == without_ones(piece.box.sizes);
}

Status add_piece_reads(const ViewPiece& piece, size_t source_rank, const WantedPart& wanted,
                       std::vector<BoxRead>* reads) {
  const auto& [part, read] = wanted;
  const bool lies_in_run = piece.sizes.empty() && source_rank == 1 && piece.box.sizes.size() != 1;
  if (!lies_in_run && has_same_dimensions(piece)) {
    reads->push_back(read_of_box(piece, part, read));
    return {};
  }
  if (lies_in_run) {
    RunReads(piece, part, read).add_to(reads);
    return {};
  }
  if (!read.target.is_contiguous())
    return unimplemented("boxes in a row are read into contiguous memory only");
  add_reads_in_a_row(piece, part, read, reads);
  return {};
}

}  // namespace shardwright::exec::internal

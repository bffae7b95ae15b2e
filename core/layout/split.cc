// SPDX-License-Identifier: Apache-2.0
//
// The offset of an empty shard is the extent of its dimension, as torch.distributed.tensor (2.15)
// has it, also where an outer axis has cut before.
#include "core/layout/split.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/layout/flat_range.h"

namespace shardwright {
namespace {

// Parts that hold an index when `size` indices are cut by all of the cuts. Each cut makes parts of
// at most two sizes, so the calls are fewer than the parts.
int64_t filled_parts(int64_t size, std::span<const AxisCut> cuts) {
  if (size == 0) return 0;
  if (cuts.empty()) return 1;
  // The first part of what is not empty has an index.
  const int64_t step = std::max<int64_t>(chunk_of({0, size}, cuts[0].parts, 0).size, 1);
  return size / step * filled_parts(step, cuts.subspan(1)) +
         filled_parts(size % step, cuts.subspan(1));
}

// Pieces of a dense local tensor that holds the indices `runs` of each dimension: every combination
// of their runs is a box.
class RunProduct {
 public:
  explicit RunProduct(std::vector<IndexRuns> dims) : dims_(std::move(dims)) {}

  // Number of boxes, at most limit + 1.
  int64_t count(int64_t limit) const {
    int64_t boxes = 1;
    for (const IndexRuns& dim : dims_) {
      const auto runs = static_cast<int64_t>(dim.runs().size());
      if (!checked_multiply(boxes, runs, &boxes) || boxes > limit) return limit + 1;
    }
    return boxes;
  }

  void append(std::vector<Piece>* out) const {
    const size_t rank = dims_.size();
    std::vector<size_t> at(rank, 0);  // run of each dimension
    Dims local(rank, 0);              // where it begins in the local tensor
    do {
      Piece piece{{Dims(rank, 0), Dims(rank, 0)}, 0};
      for (size_t d = 0; d < rank; ++d) {
        const IndexRange& run = dims_[d].runs()[at[d]];
        piece.box.offsets[d] = run.begin;
        piece.box.sizes[d] = run.size;
        piece.local_offset_elements = piece.local_offset_elements * dims_[d].size() + local[d];
      }
      out->push_back(std::move(piece));
    } while (advance(&at, &local));
  }

 private:
  // To the next combination, the last dimension fastest; false behind the last.
  bool advance(std::vector<size_t>* at, Dims* local) const {
    for (size_t d = dims_.size(); d-- > 0;) {
      const auto runs = dims_[d].runs();
      (*local)[d] += runs[(*at)[d]].size;
      if (++(*at)[d] < runs.size()) return true;
      (*at)[d] = 0;
      (*local)[d] = 0;
    }
    return false;
  }

  std::vector<IndexRuns> dims_;
};

}  // namespace

Result<SplitView> SplitView::create(const Layout& layout, std::span<const int64_t> shape) {
  SHW_RETURN_IF_ERROR(checked_element_count(shape).status());
  const SplitView split(layout, shape);
  if (layout.tensor_rank() != kAnyTensorRank && layout.tensor_rank() != split.rank()) {
    return invalid_argument(fmt::format("the layout is for {} dimensions, the tensor has {}",
                                        layout.tensor_rank(), split.rank()));
  }
  for (const Cut& cut : layout.cuts()) {
    if (cut.dim == kFlatDim || (cut.dim < split.rank() && cut.dim >= -split.rank())) continue;
    return invalid_argument(fmt::format("mesh {} shards dimension {} of a tensor of {} dimensions",
                                        axis_text(layout.mesh(), static_cast<size_t>(cut.axis)),
                                        cut.dim, split.rank()));
  }
  return split;
}

std::vector<AxisCut> SplitView::cuts(int32_t dim) const {
  std::vector<AxisCut> found;
  for (const Cut& cut : layout_->cuts()) {
    if (cuts_dim(cut, dim)) found.push_back({cut.axis, parts(cut), cut.factor});
  }
  return found;
}

int64_t SplitView::part_count(int32_t dim) const {
  int64_t count = 1;
  for (const Cut& cut : layout_->cuts()) {
    if (cuts_dim(cut, dim)) count *= parts(cut);
  }
  return count;
}

int64_t SplitView::part_of(int32_t dim, int64_t position) const {
  int64_t part = 0;
  for (const Cut& cut : layout_->cuts()) {
    if (!cuts_dim(cut, dim)) continue;
    part = part * parts(cut) + layout_->coordinate(position, static_cast<size_t>(cut.axis));
  }
  return part;
}

template <typename PartOfCut>
IndexRange SplitView::nested_chunk(int32_t dim, IndexRange range,
                                   const PartOfCut& part_of_cut) const {
  const int64_t end = range.begin + range.size;
  for (const Cut& cut : layout_->cuts()) {
    if (cuts_dim(cut, dim)) range = chunk_of(range, parts(cut), part_of_cut(cut));
  }
  return range.size == 0 ? IndexRange{end, 0} : range;
}

IndexRange SplitView::range(int32_t dim, int64_t part) const {
  int64_t below = part_count(dim);
  return nested_chunk(dim, {0, extent(dim)}, [&](const Cut& cut) {
    below /= parts(cut);
    return part / below % parts(cut);
  });
}

IndexRange SplitView::range_at(int32_t dim, int64_t extent, int64_t position) const {
  return nested_chunk(dim, {0, extent}, [&](const Cut& cut) {
    return layout_->coordinate(position, static_cast<size_t>(cut.axis));
  });
}

int64_t SplitView::filled_part_count(int32_t dim) const {
  return filled_parts(extent(dim), cuts(dim));
}

int64_t SplitView::cell_count() const {
  int64_t count = 1;
  for (const Cut& cut : layout_->cuts()) count *= parts(cut);
  return count;
}

int64_t SplitView::cell_of(int64_t position) const {
  int64_t cell = 0;
  for (int32_t dim = 0; dim < rank(); ++dim) cell = cell * part_count(dim) + part_of(dim, position);
  return cell * part_count(kFlatDim) + part_of(kFlatDim, position);
}

int64_t SplitView::filled_cell_count() const {
  int64_t count = 1;
  for (int32_t dim = 0; dim < rank(); ++dim) count *= filled_part_count(dim);
  return count;
}

int64_t SplitView::position_of(int64_t cell, int64_t replica) const {
  const Mesh& mesh = layout_->mesh();
  int64_t position = 0;
  // Takes the least significant digit of a number as the coordinate on an axis.
  const auto take = [&](size_t axis, int64_t* number) {
    position += *number % mesh.shape[axis] * layout_->axis_stride(axis);
    *number /= mesh.shape[axis];
  };
  const auto take_dim = [&](int32_t dim) {
    const std::span<const Cut> all = layout_->cuts();
    for (auto cut = all.rbegin(); cut != all.rend(); ++cut) {
      if (cuts_dim(*cut, dim)) take(static_cast<size_t>(cut->axis), &cell);
    }
  };
  take_dim(kFlatDim);
  for (int32_t dim = rank(); dim-- > 0;) take_dim(dim);
  for (size_t axis = mesh.shape.size(); axis-- > 0;) {
    if (!layout_->cuts_with(axis)) take(axis, &replica);
  }
  return position;
}

Box SplitView::box_at(int64_t position) const {
  Box box{Dims(shape_.size(), 0), Dims(shape_.size(), 0)};
  for (int32_t dim = 0; dim < rank(); ++dim) {
    const IndexRange kept = range_at(dim, extent(dim), position);
    box.offsets[static_cast<size_t>(dim)] = kept.begin;
    box.sizes[static_cast<size_t>(dim)] = kept.size;
  }
  return box;
}

IndexRuns SplitView::runs_at(int32_t dim, int64_t position) const {
  IndexRuns runs(extent(dim));
  for (const Cut& cut : layout_->cuts()) {
    if (!cuts_dim(cut, dim)) continue;
    runs.keep_part(parts(cut), layout_->coordinate(position, static_cast<size_t>(cut.axis)),
                   cut.factor);
  }
  return runs;
}

Status SplitView::append_pieces(int64_t position, std::vector<Piece>* out) const {
  if (layout_->is_strided()) return append_strided(position, out);
  Box box = box_at(position);
  if (!layout_->is_flat()) {
    out->push_back({std::move(box), 0});
    return {};
  }
  const IndexRange kept = range_at(kFlatDim, box_element_count(box), position);
  append_flat_range(box, kept, out);
  return {};
}

Status SplitView::append_strided(int64_t position, std::vector<Piece>* out) const {
  if (layout_->is_flat()) return unimplemented("a layout that is both strided and flat");
  std::vector<IndexRuns> dims;
  dims.reserve(shape_.size());
  for (int32_t dim = 0; dim < rank(); ++dim) dims.push_back(runs_at(dim, position));
  if (std::ranges::any_of(dims, [](const IndexRuns& runs) { return runs.size() == 0; })) {
    Piece empty{{Dims(shape_), Dims(shape_.size(), 0)}, 0};
    for (size_t d = 0; d < dims.size(); ++d) {
      empty.box.sizes[d] = dims[d].size();
      if (dims[d].size() > 0) empty.box.offsets[d] = dims[d].runs().front().begin;
    }
    out->push_back(std::move(empty));
    return {};
  }
  const RunProduct boxes(std::move(dims));
  if (boxes.count(kMaxPiecesPerRank) > kMaxPiecesPerRank) {
    return resource_exhausted(
        "pieces", fmt::format("the strided layout gives the rank at mesh position {} more than {} "
                              "boxes of one tensor",
                              position, kMaxPiecesPerRank));
  }
  boxes.append(out);
  return {};
}

Dims SplitView::local_shape(int64_t position) const {
  Dims local(shape_.size(), 0);
  for (int32_t dim = 0; dim < rank(); ++dim) {
    local[static_cast<size_t>(dim)] = layout_->is_strided()
                                          ? runs_at(dim, position).size()
                                          : range_at(dim, extent(dim), position).size;
  }
  if (!layout_->is_flat()) return local;
  return Dims{range_at(kFlatDim, element_count_of(local), position).size};
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on grids of shards. Every recursion goes down the axes of one dimension, of which
// there are at most kMaxShardAxes, and has two branches per level: full parts and the remainder.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/layout/index_range.h"
#include "core/plan/save/shard_grid_internal.h"

namespace shardwright::plan::internal {
namespace {

// Appends a run, joined with the one before when they touch and agree.
void append_run(std::vector<ColumnRun>* runs, const ColumnRun& run) {
  if (run.elements == 0) return;
  if (!runs->empty()) {
    ColumnRun& last = runs->back();
    if (last.elements == run.elements && last.first + last.count == run.first) {
      last.count += run.count;
      return;
    }
  }
  runs->push_back(run);
}

}  // namespace

Result<ShardGrid> ShardGrid::make(std::span<const int64_t> shape, std::span<const GridAxis> axes) {
  ShardGrid grid;
  grid.shape_.assign(shape.begin(), shape.end());
  grid.axes_.assign(axes.begin(), axes.end());
  grid.column_strides_.resize(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    grid.column_strides_[i] = grid.column_count_;
    grid.column_count_ *= static_cast<uint32_t>(axes[i].extent);
  }
  grid.chunk_count_ = element_count_of(shape) == 0 ? 0 : 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    CutDim cut;
    cut.dim = static_cast<int32_t>(d);
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].dim == cut.dim) cut.axes.push_back(static_cast<uint8_t>(i));
    }
    if (cut.axes.empty()) {
      grid.uncut_elements_ *= shape[d];
      continue;
    }
    std::ranges::sort(cut.axes, {}, [&](uint8_t i) { return axes[i].level; });
    if (grid.leaf_total(cut, 0, shape[d]) != shape[d])
      return internal_error(fmt::format("the cuts of dimension {} do not divide it", d));
    cut.leaves = static_cast<int64_t>(grid.leaf_count(cut, 0, shape[d]));
    grid.chunk_count_ *= static_cast<uint64_t>(cut.leaves);
    if (cut.leaves > 1) grid.split_mask_ |= uint64_t{1} << d;
    grid.nested_ |= cut.axes.size() > 1;
    grid.cut_dims_.push_back(std::move(cut));
  }
  if (grid.chunk_count_ == 0) grid.split_mask_ = 0;
  grid.find_sizes();
  return grid;
}

uint64_t ShardGrid::leaf_count(const CutDim& cut, size_t level, int64_t size) const {
  if (size == 0) return 0;
  if (level == cut.axes.size()) return 1;
  const ChunkParts parts = chunk_parts(size, axes_[cut.axes[level]].extent);
  return static_cast<uint64_t>(parts.full) * leaf_count(cut, level + 1, parts.step) +
         leaf_count(cut, level + 1, parts.remainder);
}

int64_t ShardGrid::leaf_total(const CutDim& cut, size_t level, int64_t size) const {
  if (size == 0 || level == cut.axes.size()) return size;
  const ChunkParts parts = chunk_parts(size, axes_[cut.axes[level]].extent);
  if (parts.full + (parts.remainder > 0 ? 1 : 0) > axes_[cut.axes[level]].extent) return -1;
  return parts.full * leaf_total(cut, level + 1, parts.step) +
         leaf_total(cut, level + 1, parts.remainder);
}

void ShardGrid::append_leaves(const CutDim& cut, size_t level, const Leaf& from,
                              std::vector<Leaf>* leaves) const {
  if (from.size == 0) return;
  if (level == cut.axes.size()) {
    leaves->push_back(from);
    return;
  }
  const uint8_t axis = cut.axes[level];
  const ChunkParts parts = chunk_parts(from.size, axes_[axis].extent);
  Leaf part{parts.step, from.column};
  for (int64_t i = 0; i < parts.full; ++i, part.column += column_strides_[axis])
    append_leaves(cut, level + 1, part, leaves);
  part.size = parts.remainder;
  append_leaves(cut, level + 1, part, leaves);
}

std::vector<ShardGrid::Leaf> ShardGrid::leaves_of(const CutDim& cut) const {
  std::vector<Leaf> leaves;
  leaves.reserve(static_cast<size_t>(cut.leaves));
  append_leaves(cut, 0, {shape_[static_cast<size_t>(cut.dim)], 0}, &leaves);
  return leaves;
}

std::vector<int64_t> ShardGrid::part_sizes(int32_t dim) const {
  std::vector<int64_t> sizes;
  for (const Leaf& leaf : leaves_of(*std::ranges::find(cut_dims_, dim, &CutDim::dim)))
    sizes.push_back(leaf.size);
  return sizes;
}

std::vector<uint32_t> ShardGrid::chunk_columns() const {
  std::vector<uint32_t> columns;
  if (chunk_count_ == 0) return columns;
  columns.push_back(0);
  // The last dimension changes fastest.
  for (const CutDim& cut : cut_dims_) {
    const std::vector<Leaf> leaves = leaves_of(cut);
    std::vector<uint32_t> finer;
    finer.reserve(columns.size() * leaves.size());
    for (const uint32_t column : columns) {
      for (const Leaf& leaf : leaves) finer.push_back(column + leaf.column);
    }
    columns = std::move(finer);
  }
  return columns;
}

ExtentPair ShardGrid::extent_of(const CutDim& cut, uint32_t column) const {
  ExtentPair extent{0, shape_[static_cast<size_t>(cut.dim)]};
  for (const uint8_t axis : cut.axes) {
    const IndexRange part =
        chunk_of({extent.offset, extent.size}, axes_[axis].extent, coordinate(column, axis));
    extent = {part.begin, part.size};
  }
  return extent;
}

int64_t ShardGrid::elements_of_column(uint32_t column) const {
  int64_t elements = uncut_elements_;
  for (const CutDim& cut : cut_dims_) {
    if (elements == 0) return 0;
    elements *= extent_of(cut, column).size;
  }
  return elements;
}

void ShardGrid::box_of_column(uint32_t column, std::span<ExtentPair> box) const {
  for (size_t d = 0; d < shape_.size(); ++d) box[d] = {0, shape_[d]};
  for (const CutDim& cut : cut_dims_) box[static_cast<size_t>(cut.dim)] = extent_of(cut, column);
}

// Goes down the axes with the elements of what is left; only for grids with one axis per dimension,
// where the size along one axis does not depend on the others.
void ShardGrid::collect(size_t axis, uint32_t column, int64_t elements,
                        std::vector<ColumnRun>* runs) const {
  if (axis == axes_.size()) return append_run(runs, {column, 1, elements});
  const uint32_t stride = column_strides_[axis];
  const ChunkParts parts =
      chunk_parts(shape_[static_cast<size_t>(axes_[axis].dim)], axes_[axis].extent);
  if (axis + 1 == axes_.size() || even_from_[axis + 1]) {
    for (size_t i = axis + 1; i < axes_.size(); ++i)
      elements *= shape_[static_cast<size_t>(axes_[i].dim)] / axes_[i].extent;
    const auto full = static_cast<uint32_t>(parts.full);
    append_run(runs, {column, full * stride, elements * parts.step});
    append_run(runs, {column + full * stride, stride, elements * parts.remainder});
    return;
  }
  for (int64_t part = 0; part < parts.full; ++part) {
    collect(axis + 1, column + static_cast<uint32_t>(part) * stride, elements * parts.step, runs);
  }
  if (parts.remainder > 0) {
    collect(axis + 1, column + static_cast<uint32_t>(parts.full) * stride,
            elements * parts.remainder, runs);
  }
}

// Goes down the axes dimension by dimension; the columns of empty parts stay 0.
void ShardGrid::fill(const Descent& at, uint32_t column, std::span<int64_t> elements) const {
  const GridAxis& axis = axes_[at.axes[0]];
  const std::span<const uint8_t> rest = at.axes.subspan(1);
  const bool ends_dim = rest.empty() || axes_[rest[0]].dim != axis.dim;
  const ChunkParts parts = chunk_parts(at.size, axis.extent);
  const int64_t held = parts.full + (parts.remainder > 0 ? 1 : 0);
  for (int64_t part = 0; part < held; ++part) {
    const uint32_t next = column + static_cast<uint32_t>(part) * column_strides_[at.axes[0]];
    const int64_t size = parts.size_of(part);
    if (rest.empty()) {
      elements[next] = at.elements * size;
    } else if (ends_dim) {
      const int64_t extent = shape_[static_cast<size_t>(axes_[rest[0]].dim)];
      fill({rest, extent, at.elements * size}, next, elements);
    } else {
      fill({rest, size, at.elements}, next, elements);
    }
  }
}

std::vector<ColumnRun> ShardGrid::runs() const {
  std::vector<ColumnRun> runs;
  if (chunk_count_ == 0) return runs;
  if (even_) return {{0, column_count_, sizes_[0]}};
  if (!nested_) {
    collect(0, 0, uncut_elements_, &runs);
    return runs;
  }
  std::vector<int64_t> elements(column_count_, 0);
  std::vector<uint8_t> order;  // nest order
  for (const CutDim& cut : cut_dims_) order.insert(order.end(), cut.axes.begin(), cut.axes.end());
  fill({order, shape_[static_cast<size_t>(cut_dims_[0].dim)], uncut_elements_}, 0, elements);
  for (uint32_t first = 0; first < column_count_;) {
    uint32_t end = first + 1;
    while (end < column_count_ && elements[end] == elements[first]) ++end;
    append_run(&runs, {first, end - first, elements[first]});
    first = end;
  }
  return runs;
}

void ShardGrid::find_sizes() {
  even_from_.assign(axes_.size(), false);
  bool even = true;
  for (size_t i = axes_.size(); i-- > 0;) {
    // Of nested cuts the product decides: parts of parts are equal when it divides the extent.
    int64_t parts = 1;
    for (const GridAxis& other : axes_) {
      if (other.dim == axes_[i].dim) parts *= other.extent;
    }
    even &= shape_[static_cast<size_t>(axes_[i].dim)] % parts == 0;
    even_from_[i] = even;
  }
  even_ = even && chunk_count_ > 0;
  if (chunk_count_ == 0) return;
  if (even_) {
    sizes_ = {elements_of_column(0)};
    return;
  }
  for (const ColumnRun& run : runs()) {
    if (std::ranges::find(sizes_, run.elements) == sizes_.end()) sizes_.push_back(run.elements);
  }
  std::ranges::sort(sizes_, std::greater<>());
}

}  // namespace shardwright::plan::internal

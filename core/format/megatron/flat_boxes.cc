// SPDX-License-Identifier: Apache-2.0
#include "core/format/megatron/flat_boxes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/checked.h"

namespace shardwright::format::megatron {
namespace {

class FlatCutter {
 public:
  explicit FlatCutter(const Box& box)
      : box_(box), below_(box.sizes.size() + 1, 1), at_(box.offsets) {
    for (size_t d = box.sizes.size(); d-- > 0;) below_[d] = below_[d + 1] * box.sizes[d];
  }

  std::vector<FlatBox> run(FlatRange range) {
    if (range.count > 0 && box_.sizes.empty()) boxes_.push_back({box_, 0});
    if (range.count > 0 && !box_.sizes.empty()) cut(0, range);
    return std::move(boxes_);
  }

 private:
  // Of the elements below what at_ says up to dimension d. Bounded by the dimensions.
  // NOLINTNEXTLINE(misc-no-recursion)
  void cut(size_t d, FlatRange range) {
    const int64_t inner = below_[d + 1];
    int64_t row = range.begin / inner;
    const int64_t in_row = range.begin % inner;
    if (in_row != 0 || range.count < inner) {
      const int64_t count = std::min(range.count, inner - in_row);
      cut_row(d, row++, {in_row, count});
      range.count -= count;
    }
    const int64_t rows = range.count / inner;
    if (rows > 0) emit(d, row, rows);
    range.count -= rows * inner;
    if (range.count > 0) cut_row(d, row + rows, {0, range.count});
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  void cut_row(size_t d, int64_t row, FlatRange range) {
    at_[d] = box_.offsets[d] + row;
    cut(d + 1, range);
  }

  void emit(size_t d, int64_t row, int64_t rows) {
    Box box = box_;
    for (size_t outer = 0; outer < d; ++outer) {
      box.offsets[outer] = at_[outer];
      box.sizes[outer] = 1;
    }
    box.offsets[d] = box_.offsets[d] + row;
    box.sizes[d] = rows;
    boxes_.push_back({std::move(box), first_});
    first_ += rows * below_[d + 1];
  }

  const Box& box_;
  std::vector<int64_t> below_;  // elements of a row of the dimension before
  Dims at_;
  int64_t first_ = 0;
  std::vector<FlatBox> boxes_;
};

Status no_such_entry(std::span<const int64_t> shape, std::span<const int64_t> entry) {
  return invalid_argument(
      fmt::format("sizes [{}] are not those of a flattened tensor of shape [{}]",
                  fmt::join(entry, ", "), fmt::join(shape, ", ")));
}

}  // namespace

Result<Dims> flattened_box_sizes(std::span<const int64_t> shape, std::span<const int64_t> entry) {
  if (entry.size() != shape.size() + 1) return no_such_entry(shape, entry);
  Dims sizes(shape);
  uint64_t elements = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0 || entry[d] <= 0 || shape[d] % entry[d] != 0)
      return no_such_entry(shape, entry);
    sizes[d] = shape[d] / entry[d];
    if (!checked_multiply(elements, static_cast<uint64_t>(sizes[d]), &elements))
      return no_such_entry(shape, entry);
  }
  if (entry.back() < 0 || elements != static_cast<uint64_t>(entry.back()))
    return no_such_entry(shape, entry);
  return sizes;
}

std::vector<FlatBox> flat_boxes(const Box& box, FlatRange range) {
  return FlatCutter(box).run(range);
}

}  // namespace shardwright::format::megatron

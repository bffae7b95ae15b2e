// SPDX-License-Identifier: Apache-2.0
#include "core/layout/box.h"

#include <algorithm>

#include <fmt/format.h>

namespace shardwright {
namespace {

__extension__ using Wide = __int128;  // ends of boxes that are refused

}  // namespace

std::strong_ordering operator<=>(const Box& a, const Box& b) {
  const std::strong_ordering by_offsets = a.offsets <=> b.offsets;
  return by_offsets != std::strong_ordering::equal ? by_offsets : a.sizes <=> b.sizes;
}

Box whole_box(std::span<const int64_t> shape) {
  return {Dims(shape.size(), 0), Dims(shape)};
}

bool box_is_empty(const Box& box) {
  return std::find(box.sizes.begin(), box.sizes.end(), 0) != box.sizes.end();
}

int64_t box_element_count(const Box& box) {
  return element_count_of(box.sizes);
}

Status check_box(const Box& box, std::span<const int64_t> shape) {
  return check_box(box.offsets, box.sizes, shape);
}

Status check_box(std::span<const int64_t> offsets, std::span<const int64_t> sizes,
                 std::span<const int64_t> shape) {
  if (offsets.size() != shape.size() || sizes.size() != shape.size()) {
    return invalid_argument(
        fmt::format("a box of {} offsets and {} sizes does not fit a shape of {} dimensions",
                    offsets.size(), sizes.size(), shape.size()));
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (offsets[d] < 0 || sizes[d] < 0) {
      return invalid_argument(fmt::format(
          "dimension {} of the box is negative: {} elements from {}", d, sizes[d], offsets[d]));
    }
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    // Written as a difference, because offset + size may overflow.
    if (offsets[d] > shape[d] || sizes[d] > shape[d] - offsets[d]) {
      return out_of_range(
          fmt::format("the box leaves the shape in dimension {}: {} elements from {} of {}", d,
                      sizes[d], offsets[d], shape[d]));
    }
  }
  return {};
}

Box intersect(const Box& a, const Box& b) {
  Box common{Dims(a.sizes.size(), 0), Dims(a.sizes.size(), 0)};
  for (size_t d = 0; d < a.sizes.size(); ++d) {
    const int64_t begin = std::max(a.offsets[d], b.offsets[d]);
    const int64_t end = std::min(a.offsets[d] + a.sizes[d], b.offsets[d] + b.sizes[d]);
    common.offsets[d] = begin;
    common.sizes[d] = std::max<int64_t>(end - begin, 0);
  }
  return common;
}

std::string box_text(const Box& box) {
  std::string text = "[";
  for (size_t d = 0; d < box.sizes.size(); ++d) {
    if (d > 0) text += ", ";
    text += fmt::format("{}:{}", box.offsets[d], Wide{box.offsets[d]} + box.sizes[d]);
  }
  return text + "]";
}

}  // namespace shardwright

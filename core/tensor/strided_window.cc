// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/strided_window.h"

#include <algorithm>

#include <fmt/format.h>

namespace shardwright {
namespace {

// Sub-byte elements: the window counts bytes, so every row of the tensor and of the box must be
// whole bytes.
Status check_whole_bytes(const TensorSpan& tensor, std::span<const int64_t> offsets,
                         std::span<const int64_t> sizes) {
  const size_t last = sizes.size() - 1;
  const auto whole = [&](int64_t count) { return dtype_fills_bytes(tensor.dtype, count); };
  const bool one_row = tensor.shape[last] == tensor.element_count();
  if (!whole(offsets[last]) || !whole(sizes[last]) || (!one_row && !whole(tensor.shape[last]))) {
    return unimplemented(
        fmt::format("a box of a {} tensor must begin and end on whole bytes in the last dimension; "
                    "the box takes {} elements from {} of a row of {}",
                    dtype_name(tensor.dtype), sizes[last], offsets[last], tensor.shape[last]));
  }
  return {};
}

Status check_inside(const TensorSpan& tensor, std::span<const int64_t> offsets,
                    std::span<const int64_t> sizes) {
  if (offsets.size() != tensor.shape.size() || sizes.size() != tensor.shape.size()) {
    return invalid_argument(
        fmt::format("a box of {} offsets and {} sizes does not fit a tensor of {} dimensions",
                    offsets.size(), sizes.size(), tensor.shape.size()));
  }
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (offsets[d] < 0 || sizes[d] < 0 || offsets[d] > tensor.shape[d] ||
        sizes[d] > tensor.shape[d] - offsets[d]) {
      return out_of_range(
          fmt::format("dimension {} of the box, {} elements from {}, leaves the tensor's extent {}",
                      d, sizes[d], offsets[d], tensor.shape[d]));
    }
  }
  return {};
}

Dims row_major_strides(std::span<const int64_t> shape) {
  Dims strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * std::max<int64_t>(shape[d], 1);
  return strides;
}

// Turns element counts of the last dimension into bytes; the box was checked.
void count_in_bytes(int64_t bits, StridedWindow* window, Dims* offsets) {
  const size_t last = window->shape.size() - 1;
  window->shape[last] = window->shape[last] / 8 * bits + window->shape[last] % 8 * bits / 8;
  (*offsets)[last] = (*offsets)[last] / 8 * bits + (*offsets)[last] % 8 * bits / 8;
  for (size_t d = 0; d < last; ++d)
    window->strides[d] = window->strides[d] / 8 * bits + window->strides[d] % 8 * bits / 8;
}

}  // namespace

Result<StridedWindow> window_of(const TensorSpan& tensor, std::span<const int64_t> offsets,
                                std::span<const int64_t> sizes) {
  SHW_RETURN_IF_ERROR(check_inside(tensor, offsets, sizes));
  StridedWindow window;
  window.shape = Dims(sizes);
  window.strides = tensor.strides.empty() ? row_major_strides(tensor.shape) : Dims(tensor.strides);
  if (window_is_empty(window)) {
    window.data = tensor.data;
    if (!dtype_is_subbyte(tensor.dtype))
      window.element_bytes = static_cast<uint64_t>(dtype_bits(tensor.dtype)) / 8;
    return window;
  }
  Dims first(offsets);
  if (dtype_is_subbyte(tensor.dtype)) {
    if (sizes.empty()) {
      return unimplemented(
          fmt::format("a {} scalar does not fill whole bytes", dtype_name(tensor.dtype)));
    }
    SHW_RETURN_IF_ERROR(check_whole_bytes(tensor, offsets, sizes));
    count_in_bytes(dtype_bits(tensor.dtype), &window, &first);
  } else {
    window.element_bytes = static_cast<uint64_t>(dtype_bits(tensor.dtype)) / 8;
  }
  int64_t first_element = 0;
  for (size_t d = 0; d < first.size(); ++d) first_element += first[d] * window.strides[d];
  window.data = tensor.data + first_element * static_cast<int64_t>(window.element_bytes);
  return window;
}

uint64_t window_bytes(const StridedWindow& window) {
  uint64_t bytes = window.element_bytes;
  for (const int64_t extent : window.shape) bytes *= static_cast<uint64_t>(extent);
  return bytes;
}

bool window_is_empty(const StridedWindow& window) {
  return std::find(window.shape.begin(), window.shape.end(), 0) != window.shape.end();
}

bool window_is_contiguous(const StridedWindow& window) {
  if (window_is_empty(window)) return true;
  int64_t expected = 1;
  for (size_t d = window.shape.size(); d-- > 0;) {
    if (window.shape[d] == 1) continue;
    if (window.strides[d] != expected) return false;
    expected *= window.shape[d];
  }
  return true;
}

StridedWindow packed_window(std::byte* data, uint64_t element_bytes, const Dims& shape) {
  return {data, element_bytes, shape, row_major_strides(shape)};
}

}  // namespace shardwright

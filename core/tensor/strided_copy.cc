// SPDX-License-Identifier: Apache-2.0
//
// Every copy works on runs: extents of 1 are dropped and neighbouring dimensions merged, the
// innermost contiguous block becomes one run of bytes, and the dimensions around it are walked like
// an odometer. A start in the middle costs one division per remaining dimension.
#include "core/tensor/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"

namespace shardwright {
namespace {

constexpr size_t kMaxAxes = static_cast<size_t>(kMaxTensorRank);

// One walked dimension of a copy with S strided sides; strides in bytes.
template <size_t S>
struct Axis {
  uint64_t size = 1;
  std::array<int64_t, S> stride{};
};

// Runs of run_bytes that lie at base + sum(coordinate * stride); axes from the outermost to the
// innermost.
template <size_t S>
struct Runs {
  uint64_t run_bytes = 0;
  size_t axis_count = 0;
  std::array<Axis<S>, kMaxAxes> axes;
};

bool window_is_empty(const StridedWindow& window) {
  return std::find(window.shape.begin(), window.shape.end(), 0) != window.shape.end();
}

template <size_t S>
bool merges(const Axis<S>& outer, const Axis<S>& inner) {
  for (size_t s = 0; s < S; ++s) {
    if (outer.stride[s] != inner.stride[s] * static_cast<int64_t>(inner.size)) return false;
  }
  return true;
}

// Precondition: not empty, all windows of one shape and element_bytes.
template <size_t S>
Runs<S> make_runs(const std::array<const StridedWindow*, S>& windows) {
  Runs<S> runs;
  const auto element_bytes = static_cast<int64_t>(windows[0]->element_bytes);
  for (size_t d = 0; d < windows[0]->shape.size(); ++d) {
    Axis<S> axis{static_cast<uint64_t>(windows[0]->shape[d]), {}};
    if (axis.size == 1) continue;
    for (size_t s = 0; s < S; ++s) axis.stride[s] = windows[s]->strides[d] * element_bytes;
    Axis<S>* previous = runs.axis_count == 0 ? nullptr : &runs.axes[runs.axis_count - 1];
    if (previous != nullptr && merges(*previous, axis)) {
      axis.size *= previous->size;
      *previous = axis;
    } else {
      runs.axes[runs.axis_count++] = axis;
    }
  }
  runs.run_bytes = windows[0]->element_bytes;
  if (runs.axis_count > 0) {
    const Axis<S>& inner = runs.axes[runs.axis_count - 1];
    const bool dense = std::all_of(inner.stride.begin(), inner.stride.end(),
                                   [&](int64_t stride) { return stride == element_bytes; });
    if (dense) {
      runs.run_bytes *= inner.size;
      --runs.axis_count;
    }
  }
  return runs;
}

// Position of one run among all runs.
template <size_t S>
class Odometer {
 public:
  Odometer(const Runs<S>& runs, const std::array<std::byte*, S>& bases, uint64_t run_index)
      : runs_(runs), at_(bases) {
    for (size_t a = runs_.axis_count; a-- > 0;) {
      const Axis<S>& axis = runs_.axes[a];
      coordinate_[a] = run_index % axis.size;
      run_index /= axis.size;
      for (size_t s = 0; s < S; ++s)
        at_[s] += static_cast<int64_t>(coordinate_[a]) * axis.stride[s];
    }
  }

  std::byte* at(size_t side) const { return at_[side]; }
  // Runs from here to the end of the innermost axis.
  uint64_t runs_in_row() const {
    return runs_.axis_count == 0 ? 1 : inner().size - coordinate_[runs_.axis_count - 1];
  }
  int64_t row_stride(size_t side) const { return runs_.axis_count == 0 ? 0 : inner().stride[side]; }

  // Moves on by count <= runs_in_row() runs. Past the last run the position wraps to the first.
  void advance(uint64_t count) {
    for (size_t a = runs_.axis_count; a-- > 0;) {
      const Axis<S>& axis = runs_.axes[a];
      coordinate_[a] += count;
      for (size_t s = 0; s < S; ++s) at_[s] += static_cast<int64_t>(count) * axis.stride[s];
      if (coordinate_[a] < axis.size) return;
      coordinate_[a] = 0;
      for (size_t s = 0; s < S; ++s) at_[s] -= static_cast<int64_t>(axis.size) * axis.stride[s];
      count = 1;
    }
  }

 private:
  const Axis<S>& inner() const { return runs_.axes[runs_.axis_count - 1]; }
  const Runs<S>& runs_;
  std::array<std::byte*, S> at_;
  std::array<uint64_t, kMaxAxes> coordinate_{};
};

// count blocks of bytes each, with a stride on both sides.
struct BlockCopy {
  std::byte* to;
  const std::byte* from;
  int64_t to_stride;
  int64_t from_stride;
  uint64_t bytes;
  uint64_t count;
};

template <size_t Bytes>
void copy_fixed_blocks(const BlockCopy& copy) {
  std::byte* to = copy.to;
  const std::byte* from = copy.from;
  for (uint64_t i = 0; i < copy.count; ++i, to += copy.to_stride, from += copy.from_stride) {
    std::memcpy(to, from, Bytes);
  }
}

void copy_blocks(const BlockCopy& copy) {
  switch (copy.bytes) {
    case 1:
      return copy_fixed_blocks<1>(copy);
    case 2:
      return copy_fixed_blocks<2>(copy);
    case 4:
      return copy_fixed_blocks<4>(copy);
    case 8:
      return copy_fixed_blocks<8>(copy);
    case 16:
      return copy_fixed_blocks<16>(copy);
    default:
      break;
  }
  std::byte* to = copy.to;
  const std::byte* from = copy.from;
  for (uint64_t i = 0; i < copy.count; ++i, to += copy.to_stride, from += copy.from_stride) {
    std::memcpy(to, from, copy.bytes);
  }
}

enum class Direction { kGather, kScatter };

// The dense side of a gather (written) or a scatter (read); strided is the other side.
template <Direction D>
BlockCopy block_copy(std::byte* strided, int64_t stride, std::byte* dense, uint64_t bytes) {
  const auto dense_stride = static_cast<int64_t>(bytes);
  if constexpr (D == Direction::kGather) return {dense, strided, dense_stride, stride, bytes, 1};
  return {strided, dense, stride, dense_stride, bytes, 1};
}

// Moves bytes [begin, begin + size) of the window's row-major run from or to dense.
template <Direction D>
void move_bytes(const StridedWindow& window, uint64_t begin, std::byte* dense, uint64_t size) {
  if (size == 0 || window_is_empty(window)) return;
  const Runs<1> runs = make_runs<1>({&window});
  Odometer<1> odometer(runs, {window.data}, begin / runs.run_bytes);
  uint64_t inside = begin % runs.run_bytes;  // where the first run is entered
  while (size > 0) {
    if (inside != 0 || size < runs.run_bytes) {
      const uint64_t bytes = std::min(runs.run_bytes - inside, size);
      copy_blocks(block_copy<D>(odometer.at(0) + inside, 0, dense, bytes));
      odometer.advance(1);
      dense += bytes;
      size -= bytes;
      inside = 0;
      continue;
    }
    BlockCopy copy = block_copy<D>(odometer.at(0), odometer.row_stride(0), dense, runs.run_bytes);
    copy.count = std::min(odometer.runs_in_row(), size / runs.run_bytes);
    copy_blocks(copy);
    odometer.advance(copy.count);
    dense += copy.count * runs.run_bytes;
    size -= copy.count * runs.run_bytes;
  }
}

// Sub-byte elements: the window counts bytes, so every row of the tensor and of the box must be
// whole bytes.
Status check_whole_bytes(const TensorSpan& tensor, std::span<const int64_t> offsets,
                         std::span<const int64_t> sizes) {
  const int64_t bits = dtype_bits(tensor.dtype);
  const size_t last = sizes.size() - 1;
  // Only the remainder modulo 8 elements matters, so no product can overflow.
  const auto whole = [bits](int64_t elements) { return (elements % 8) * bits % 8 == 0; };
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

bool window_is_contiguous(const StridedWindow& window) {
  return window_is_empty(window) || make_runs<1>({&window}).axis_count == 0;
}

void gather(const StridedWindow& from, uint64_t begin, std::span<std::byte> to) {
  move_bytes<Direction::kGather>(from, begin, to.data(), to.size());
}

void scatter(std::span<const std::byte> from, const StridedWindow& to, uint64_t begin) {
  // The dense side of a scatter is only read.
  move_bytes<Direction::kScatter>(to, begin, const_cast<std::byte*>(from.data()), from.size());
}

void copy_window(const StridedWindow& from, const StridedWindow& to) {
  if (window_is_empty(from)) return;
  const Runs<2> runs = make_runs<2>({&from, &to});
  uint64_t left = window_bytes(from) / runs.run_bytes;
  for (Odometer<2> odometer(runs, {from.data, to.data}, 0); left > 0;) {
    const uint64_t count = odometer.runs_in_row();
    copy_blocks({odometer.at(1), odometer.at(0), odometer.row_stride(1), odometer.row_stride(0),
                 runs.run_bytes, count});
    odometer.advance(count);
    left -= count;
  }
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
//
// Every copy works on runs: extents of 1 are dropped and neighbouring dimensions merged, the
// innermost contiguous block becomes one run of bytes, and the dimensions around it are walked like
// an odometer. A start in the middle costs one division per remaining dimension.
#include "core/tensor/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/limits.h"
#include "core/tensor/stream_copy.h"

namespace shardwright {
namespace {

constexpr size_t kMaxAxes = static_cast<size_t>(kMaxTensorRank);
constexpr uint64_t kZeroStepBytes = 4096;

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

template <size_t Bytes>
void copy_fixed_blocks(const RunCopy& copy) {
  for_runs(copy, [](std::byte* to, const std::byte* from) { std::memcpy(to, from, Bytes); });
}

void copy_blocks(const RunCopy& copy) {
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
      return stream_copy(copy);
  }
}

enum class Direction { kGather, kScatter };

// The dense side of a gather (written) or a scatter (read); strided is the other side.
template <Direction D>
RunCopy block_copy(std::byte* strided, int64_t stride, std::byte* dense, uint64_t bytes) {
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
    RunCopy copy = block_copy<D>(odometer.at(0), odometer.row_stride(0), dense, runs.run_bytes);
    copy.count = std::min(odometer.runs_in_row(), size / runs.run_bytes);
    copy_blocks(copy);
    odometer.advance(copy.count);
    dense += copy.count * runs.run_bytes;
    size -= copy.count * runs.run_bytes;
  }
}

// Elements of two windows of one shape, cut into boxes: rest of a first row, whole rows, begin of a
// last row, and so on inwards. The first element of a window may lie outside the memory that is
// there, so addresses of rows are numbers until they are used.
class RangeCopy {
 public:
  explicit RangeCopy(uint64_t element_bytes) : element_bytes_(element_bytes) {}

  struct Place {
    uintptr_t address = 0;
    std::span<const int64_t> strides;
  };

  void run(std::span<const int64_t> shape, const Place& from, const Place& to,
           ElementRange range) const {
    if (range.begin >= range.end) return;
    uint64_t inner = 1;
    for (size_t d = 1; d < shape.size(); ++d) inner *= static_cast<uint64_t>(shape[d]);
    if (shape.empty() ||
        (range.begin == 0 && range.end == inner * static_cast<uint64_t>(shape[0]))) {
      copy_window(window(shape, from), window(shape, to));
      return;
    }
    uint64_t row = range.begin / inner;
    const uint64_t last_row = range.end / inner;
    const uint64_t head = range.begin % inner;
    if (row == last_row) {
      run_row(shape, from, to, row, {head, range.end % inner});
      return;
    }
    if (head != 0) run_row(shape, from, to, row++, {head, inner});
    if (row < last_row) {
      Dims rows(shape);
      rows[0] = static_cast<int64_t>(last_row - row);
      copy_window(window(rows, moved(from, row)), window(rows, moved(to, row)));
    }
    run_row(shape, from, to, last_row, {0, range.end % inner});
  }

 private:
  Place moved(Place place, uint64_t row) const {
    place.address += row * static_cast<uint64_t>(place.strides[0]) * element_bytes_;
    return place;
  }

  void run_row(std::span<const int64_t> shape, const Place& from, const Place& to, uint64_t row,
               ElementRange range) const {
    if (range.begin >= range.end) return;
    Place inner_from = moved(from, row);
    Place inner_to = moved(to, row);
    inner_from.strides = from.strides.subspan(1);
    inner_to.strides = to.strides.subspan(1);
    run(shape.subspan(1), inner_from, inner_to, range);
  }

  StridedWindow window(std::span<const int64_t> shape, const Place& place) const {
    return {reinterpret_cast<std::byte*>(place.address), element_bytes_, Dims(shape),
            Dims(place.strides)};
  }

  uint64_t element_bytes_;
};

}  // namespace

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

void copy_elements(const StridedWindow& from, const StridedWindow& to, ElementRange range) {
  if (window_is_empty(from)) return;
  RangeCopy(from.element_bytes)
      .run(from.shape, {reinterpret_cast<uintptr_t>(from.data), from.strides},
           {reinterpret_cast<uintptr_t>(to.data), to.strides}, range);
}

void fill_zero(const StridedWindow& to) {
  const uint64_t size = window_bytes(to);
  if (size == 0) return;
  if (window_is_contiguous(to)) {
    std::memset(to.data, 0, size);
    return;
  }
  static constexpr std::array<std::byte, kZeroStepBytes> kZeros{};
  for (uint64_t begin = 0; begin < size; begin += kZeroStepBytes)
    scatter(std::span(kZeros).first(std::min(kZeroStepBytes, size - begin)), to, begin);
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
//
// StridedWindow: where the elements of a box of a strided tensor lie. A value; nothing here looks
// at the memory, so a window may be one of memory that the host cannot reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/result.h"
#include "core/tensor/tensor_view.h"

namespace shardwright {

// A strided window onto memory: element (i0, i1, ...) lies at data + sum(ik * strides[k]) * bytes.
// For sub-byte dtypes shape and strides are in bytes of the last dimension (element_bytes = 1).
struct StridedWindow {
  std::byte* data = nullptr;
  uint64_t element_bytes = 1;
  Dims shape;
  Dims strides;  // in elements, one per dimension
};

// Elements [begin, end) of a window, in row-major order.
struct ElementRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// The window of box (offsets, sizes inside the tensor) of a view; UNIMPLEMENTED when a sub-byte box
// does not begin and end on whole bytes; OUT_OF_RANGE when the box leaves the tensor.
Result<StridedWindow> window_of(const TensorSpan& tensor, std::span<const int64_t> offsets,
                                std::span<const int64_t> sizes);
// The window of packed row-major elements.
StridedWindow packed_window(std::byte* data, uint64_t element_bytes, const Dims& shape);

uint64_t window_bytes(const StridedWindow& window);
bool window_is_empty(const StridedWindow& window);
bool window_is_contiguous(const StridedWindow& window);

}  // namespace shardwright

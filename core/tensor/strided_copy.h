// SPDX-License-Identifier: Apache-2.0
//
// Copies between a dense row-major byte run and boxes of strided tensors. Contiguous runs become
// memcpy; the innermost contiguous block is found once. Used by save (gather into staging) and load
// (scatter out of staging). Pure, any thread; source and destination must not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/status.h"
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

// The window of box (offsets, sizes inside the tensor) of a view; UNIMPLEMENTED when a sub-byte box
// does not begin and end on whole bytes; OUT_OF_RANGE when the box leaves the tensor.
Result<StridedWindow> window_of(const TensorSpan& tensor, std::span<const int64_t> offsets,
                                std::span<const int64_t> sizes);

uint64_t window_bytes(const StridedWindow& window);
bool window_is_contiguous(const StridedWindow& window);

// Copies bytes [begin, begin + bytes.size()) of the window's row-major byte run. begin may fall
// inside an element.
void gather(const StridedWindow& from, uint64_t begin, std::span<std::byte> to);
void scatter(std::span<const std::byte> from, const StridedWindow& to, uint64_t begin);
// Same shape and element_bytes on both sides.
void copy_window(const StridedWindow& from, const StridedWindow& to);

}  // namespace shardwright

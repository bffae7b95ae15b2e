// SPDX-License-Identifier: Apache-2.0
//
// Copies between dense row-major byte runs and windows of host memory. Contiguous runs become
// memcpy; the innermost contiguous block is found once. What copies tensors goes through
// core/device and comes here when they lie in host memory. Pure, any thread; source and destination
// must not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/tensor/strided_window.h"

namespace shardwright {

// Copies bytes [begin, begin + bytes.size()) of the window's row-major byte run. begin may fall
// inside an element.
void gather(const StridedWindow& from, uint64_t begin, std::span<std::byte> to);
void scatter(std::span<const std::byte> from, const StridedWindow& to, uint64_t begin);
// Same shape and element_bytes on both sides.
void copy_window(const StridedWindow& from, const StridedWindow& to);
// The same for some of the elements; nothing else of either window is touched or needs to exist.
void copy_elements(const StridedWindow& from, const StridedWindow& to, ElementRange range);
// Elements of every dtype are zero when their bits are.
void fill_zero(const StridedWindow& to);

}  // namespace shardwright

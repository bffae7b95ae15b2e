// SPDX-License-Identifier: Apache-2.0
//
// Where the bytes of a box lie in its tensor. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "core/format/saving.h"
#include "core/layout/box.h"

namespace shardwright::format::safetensors::internal {

struct BoxPlace {
  uint64_t offset = 0;  // of its first byte in the tensor's row-major bytes
  Scatter scatter;      // without loops: the bytes lie together
};

// The box lies inside of the shape, has elements, and its rows are whole bytes.
BoxPlace place_box(const Box& box, std::span<const int64_t> shape, DType dtype);

}  // namespace shardwright::format::safetensors::internal

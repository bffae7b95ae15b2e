// SPDX-License-Identifier: Apache-2.0
//
// Bytes of elements that are packed without padding. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/status.h"
#include "core/layout/box.h"
#include "core/tensor/dtype.h"

namespace shardwright {

// Rounded up; those of the tensor were checked to fit (dtype_packed_bytes).
inline uint64_t packed_bytes(uint64_t bits, int64_t elements) {
  const auto count = static_cast<uint64_t>(elements);
  if (bits % 8 == 0) return count * (bits / 8);
  return count / 8 * bits + (count % 8 * bits + 7) / 8;
}

inline uint64_t box_bytes(DType dtype, const Box& box) {
  return packed_bytes(static_cast<uint64_t>(dtype_bits(dtype)), box_element_count(box));
}

// Elements narrower than a byte can be cut only where a byte ends: UNIMPLEMENTED naming the tensor,
// its dtype and the box when the row-major bytes of the box are not whole bytes of the tensor. They
// are when the box is the whole tensor, or its offset and size in the last dimension fall on bytes
// and so does the extent.
Status check_whole_bytes(std::string_view name, DType dtype, std::span<const int64_t> shape,
                         const Box& box);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
//
// Bytes of elements that are packed without padding, rounded up; those of their tensor were checked
// to fit. Pure functions.
#pragma once

#include <cstdint>

#include "core/layout/box.h"
#include "core/tensor/dtype.h"

namespace shardwright::plan {
namespace internal {

inline uint64_t packed_bytes(uint64_t bits, int64_t elements) {
  const auto count = static_cast<uint64_t>(elements);
  if (bits % 8 == 0) return count * (bits / 8);
  return count / 8 * bits + (count % 8 * bits + 7) / 8;
}

}  // namespace internal

inline uint64_t box_bytes(DType dtype, const Box& box) {
  return internal::packed_bytes(static_cast<uint64_t>(dtype_bits(dtype)), box_element_count(box));
}

}  // namespace shardwright::plan

// SPDX-License-Identifier: Apache-2.0
//
// Element-wise conversion between real dtypes for loads with cast = allow: bool, integers, float16,
// bfloat16, float32, float64 and the 8-bit floats. Rounds to nearest even; float to integer
// truncates toward zero and saturates; NaN to integer is 0. Pure, any thread.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/status.h"
#include "core/tensor/dtype.h"

namespace shardwright {

bool cast_is_supported(DType from, DType to);
// Converts count elements; UNIMPLEMENTED naming both dtypes when the pair is not supported.
Status cast_elements(DType from, std::span<const std::byte> source, DType to,
                     std::span<std::byte> target);

}  // namespace shardwright

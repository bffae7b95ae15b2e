// SPDX-License-Identifier: Apache-2.0
//
// Element-wise conversion between real dtypes for loads with cast = allow: bool, integers, float16,
// bfloat16, float32, float64 and the 8-bit floats. Pure, any thread.
//
// To a float: rounds to nearest, ties to even. Infinity and what rounds beyond the largest finite
// value become infinity where the type has one, else what torch 2.15 makes of it: the largest value
// in float8_e4m3fn, NaN in the fnuz types. float8_e8m0fnu has neither zero nor sign: values below
// its least, zero included, become the least, ties go up as in torch, and negative values become
// NaN (torch drops the sign). To an integer: truncates toward zero, saturates (from integers too),
// NaN is 0. To bool: all but zero is true.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/status.h"
#include "core/tensor/dtype.h"

namespace shardwright {

// True for every pair of the types above, and for a dtype with itself.
bool cast_is_supported(DType from, DType to);
// Converts all elements of source; neither needs alignment, the two must not overlap. UNIMPLEMENTED
// naming both dtypes when the pair is not supported; INVALID_ARGUMENT when the sizes do not hold
// equally many whole elements.
Status cast_elements(DType from, std::span<const std::byte> source, DType to,
                     std::span<std::byte> target);

}  // namespace shardwright

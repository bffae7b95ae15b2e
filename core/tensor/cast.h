// SPDX-License-Identifier: Apache-2.0
//
// Element-wise conversion between real dtypes for loads with cast = allow: bool, integers, float16,
// bfloat16, float32, float64 and the 8-bit floats. Pure, any thread.
//
// To a float: rounds to nearest, ties to even; beyond the largest finite value it becomes infinity,
// or NaN in a type without infinity (as torch does). float8_e8m0fnu has neither zero nor sign:
// values below its least, zero included, become the least, negative ones NaN. To an integer:
// truncates toward zero, saturates (from integers too), NaN is 0. To bool: everything but zero is
// true.
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

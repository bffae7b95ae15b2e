// SPDX-License-Identifier: Apache-2.0
//
// Sums of equal parts in the order in which they lie, so that the same parts give the same bits
// wherever they come from. float32 and float64 add in their own precision; float16 and bfloat16 add
// in float32 and round once, at the end. Pure, any thread.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/status.h"
#include "core/tensor/dtype.h"

namespace shardwright {

// float16, bfloat16, float32, float64, and the integers (which wrap).
bool ordered_add_is_supported(DType dtype);
// target[i] = round((parts[0][i] + parts[1][i] + ...) * scale); parts lie back to back, each as
// long as target. The multiplication is in the precision of the sum and left out for scale 1;
// integers take no other scale. target may be the first part and overlaps no other. UNIMPLEMENTED
// naming the dtype; INVALID_ARGUMENT where sizes do not fit.
Status add_in_order(DType dtype, std::span<const std::byte> parts, size_t part_count, double scale,
                    std::span<std::byte> target);
// target[i] += more[i], rounded to dtype.
Status add_to(DType dtype, std::span<const std::byte> more, std::span<std::byte> target);
// target[i] *= factor, rounded to dtype.
Status scale_elements(DType dtype, double factor, std::span<std::byte> target);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
//
// N-D flattened tensors, as megatron-core up to 0.14 stores the states of its distributed
// optimizer: a tensor of shape G, cut into f_1 x ... x f_n equal boxes, is an entry of sizes
// [f_1, ..., f_n, m], where m elements of each box lie in row-major order, and each chunk is a
// range of one of them (core/layout/flat_range.h). Exact integers throughout. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/result.h"
#include "core/tensor/dims.h"

namespace shardwright::format::megatron {

// Sizes of the equal boxes of a tensor of that shape whose entry has these sizes; INVALID_ARGUMENT
// when it is no such entry.
Result<Dims> flattened_box_sizes(std::span<const int64_t> shape, std::span<const int64_t> entry);

}  // namespace shardwright::format::megatron

// SPDX-License-Identifier: Apache-2.0
//
// N-D flattened tensors, as megatron-core up to 0.14 stores the states of its distributed
// optimizer: a tensor of shape G, cut into f_1 x ... x f_n equal boxes, is an entry of sizes
// [f_1, ..., f_n, m], where m elements of each box lie in row-major order, and each chunk is a
// range of one of them. Exact integers throughout. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/layout/box.h"
#include "core/tensor/dims.h"

namespace shardwright::format::megatron {

// Sizes of the equal boxes of a tensor of that shape whose entry has these sizes; INVALID_ARGUMENT
// when it is no such entry.
Result<Dims> flattened_box_sizes(std::span<const int64_t> shape, std::span<const int64_t> entry);

struct FlatRange {
  int64_t begin = 0;
  int64_t count = 0;
};
// A box of a tensor, and the number of its first element behind the range's: its elements come in
// the order of the range.
struct FlatBox {
  Box box;
  int64_t first = 0;
};
// Elements of a box in row-major order, as boxes: at most 2 n - 1. The range lies in it.
std::vector<FlatBox> flat_boxes(const Box& box, FlatRange range);

}  // namespace shardwright::format::megatron

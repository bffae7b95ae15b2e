// SPDX-License-Identifier: Apache-2.0
//
// Box: offsets and sizes in the index space of a tensor, and the algebra on them. An empty box
// (some size 0) holds no element; a box of no dimensions is the one element of a scalar. Value
// type.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/result.h"
#include "core/tensor/dims.h"

namespace shardwright {

struct Box {
  Dims offsets;
  Dims sizes;
  friend bool operator==(const Box&, const Box&) = default;
  friend std::strong_ordering operator<=>(const Box& a, const Box& b);
};

Box whole_box(std::span<const int64_t> shape);
bool box_is_empty(const Box& box);
int64_t box_element_count(const Box& box);  // box was checked before
// INVALID_ARGUMENT for different ranks or negative values, OUT_OF_RANGE when the box leaves the
// shape.
Status check_box(const Box& box, std::span<const int64_t> shape);
Status check_box(std::span<const int64_t> offsets, std::span<const int64_t> sizes,
                 std::span<const int64_t> shape);
// The common part, empty box when there is none. Same rank.
Box intersect(const Box& a, const Box& b);
// "[2:5, 0:8]"; "[]" for a scalar.
std::string box_text(const Box& box);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
//
// An order of the chunks of a tensor in which neighbours come together. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/plan/catalog.h"

namespace shardwright::plan::internal {

// Numbers of the chunks within the tensor, along a Z-order curve through their middles: distances
// count in mean sizes of the chunks, so that long chunks are compared by their short sides. Linear.
// The tensor has a split dimension and fewer than 2^32 chunks.
std::vector<uint32_t> curve_order(const Catalog& catalog, size_t tensor);

}  // namespace shardwright::plan::internal

// SPDX-License-Identifier: Apache-2.0
//
// Bytes of the elements of a box. Pure function.
#pragma once

#include <cstdint>

#include "core/layout/box.h"
#include "core/tensor/dtype.h"

namespace shardwright::plan {

// Packed; those of a tensor that the box lies in were checked to fit.
uint64_t box_bytes(DType dtype, const Box& box);

}  // namespace shardwright::plan

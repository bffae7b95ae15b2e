// SPDX-License-Identifier: Apache-2.0
//
// fill_value of an array of zarr: what the elements of a chunk are that has no file. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "core/base/json_tree.h"
#include "core/base/result.h"
#include "core/tensor/dtype.h"

namespace shardwright::format::zarr {

// The bytes of one element; none for null. DATA_LOSS for what is no value of the dtype;
// UNIMPLEMENTED for complex numbers. The message goes on after "its .zarray".
Result<std::vector<std::byte>> fill_element(JsonValueView value, DType dtype);

}  // namespace shardwright::format::zarr

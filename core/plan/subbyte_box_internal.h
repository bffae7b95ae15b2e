// SPDX-License-Identifier: Apache-2.0
//
// Elements narrower than a byte can be cut only where a byte ends. A state refuses other pieces
// itself, and whole tensors that end inside a byte; catalogs of foreign checkpoints may hold
// either, and a whole tensor's bytes can be read whatever its last one holds. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/result.h"
#include "core/layout/box.h"
#include "core/tensor/dtype.h"

namespace shardwright::plan::internal {

// True when the row-major bytes of the box are whole bytes of the tensor: the box is the whole
// tensor, or its offset and size in the last dimension fall on bytes and so does the extent. Always
// true for dtypes of whole bytes.
bool box_is_whole_bytes(DType dtype, std::span<const int64_t> shape, const Box& box);
// UNIMPLEMENTED naming the tensor, its dtype and the box when it is not.
Status check_whole_bytes(std::string_view name, DType dtype, std::span<const int64_t> shape,
                         const Box& box);

}  // namespace shardwright::plan::internal

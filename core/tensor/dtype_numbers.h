// SPDX-License-Identifier: Apache-2.0
//
// Dtypes by numbers that come from outside: those of the C interface, which are DType's own, and
// the four bytes of DLPack's DLDataType. Pure, any thread.
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "core/tensor/dtype.h"

namespace shardwright {

// INVALID_ARGUMENT for a number that is no dtype.
Result<DType> dtype_from_number(int32_t number);
// kInvalid for a number that is no dtype.
DType find_dtype(int32_t number);
// Of code + 256 * bits + 65536 * lanes; kInvalid for what dtype_from_dlpack refuses.
DType find_dlpack_dtype(uint32_t type);

}  // namespace shardwright

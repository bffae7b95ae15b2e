// SPDX-License-Identifier: Apache-2.0
//
// Makes tensors in memory of the library: fresh pages, zero, aligned to 4 KiB. Any thread.
#pragma once

#include <memory>
#include <span>

#include "capi/boundary/handles.h"
#include "core/base/result.h"

namespace shardwright::capi {

// INVALID_ARGUMENT for a bad shape, RESOURCE_EXHAUSTED when the system has no memory.
Result<std::shared_ptr<OwnedTensorImpl>> make_owned_tensor(DType dtype,
                                                           std::span<const int64_t> shape);

}  // namespace shardwright::capi

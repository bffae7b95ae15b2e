// SPDX-License-Identifier: Apache-2.0
//
// Batches of the C surface (flat arrays) as entries of a State. Everything but tensor memory is
// copied. Thread-compatible.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/state/state.h"
#include "shardwright/state.h"

namespace shardwright::capi {

// The batches have our size (they went through the struct reader). Failures name parameter and
// entry.
Status add_tensor_batch(const shw_tensor_batch& batch, State* state);
Result<std::vector<ObjectEntry>> read_object_batch(const shw_object_batch& batch);

}  // namespace shardwright::capi

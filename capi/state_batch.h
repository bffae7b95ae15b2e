// SPDX-License-Identifier: Apache-2.0
//
// Batches of the C surface (flat arrays) as entries of a State. Everything but tensor memory is
// copied. Thread-compatible.
#pragma once

#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/state/state.h"
#include "shardwright/state.h"

namespace shardwright::capi {

// The batches have our size (they went through the struct reader). Failures name parameter and
// entry.
Status add_tensor_batch(const shw_tensor_batch& batch, State* state);
Result<std::vector<ObjectEntry>> read_object_batch(const shw_object_batch& batch);
// What one tensor is of the global one: shape and offsets are both NULL or have ndim values each.
struct PartOf {
  const int64_t* global_shape = nullptr;
  const int64_t* offsets = nullptr;
  int32_t kind = SHW_KIND_AUTO;
};
// As a batch of one.
Status add_one_tensor(std::string_view name, const shw_tensor& tensor, const PartOf& part,
                      State* state);

}  // namespace shardwright::capi

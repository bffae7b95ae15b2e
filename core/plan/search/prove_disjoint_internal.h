// SPDX-License-Identifier: Apache-2.0
//
// Proof that chunks share no element, for tensors that need not be covered. Pure function.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/base/status.h"
#include "core/plan/catalog.h"

namespace shardwright::plan::internal {

// INVALID_ARGUMENT naming two chunks of the tensor that share an element, and their places.
Status prove_disjoint(const Catalog& catalog, size_t tensor, std::string_view place_noun);

}  // namespace shardwright::plan::internal

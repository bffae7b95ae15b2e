// SPDX-License-Identifier: Apache-2.0
//
// What an entry must be before it may enter a state. Pure functions; failures name the entry.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/state/state.h"

namespace shardwright::internal {

// Checks everything but the uniqueness of the name. *canonical gets the canonical text of a path
// that is written otherwise.
Status check_tensor(const TensorRef& tensor, std::string* canonical);
// The same for an object, whose path becomes canonical.
Status settle_object(ObjectEntry* object);
// INVALID_ARGUMENT unless there is one number per axis, each 0 or a divisor of the extent.
Status check_fragments(std::span<const int64_t> fragments, std::span<const int64_t> shape);

}  // namespace shardwright::internal

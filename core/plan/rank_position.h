// SPDX-License-Identifier: Apache-2.0
//
// RankPosition: which of how many ranks. A value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.h"

namespace shardwright::plan {

struct RankPosition {
  int32_t rank = 0;
  int32_t world_size = 1;
};

// Whether the plan at this place of `count` may stand there; those before it may. World size 0 =
// not known. INVALID_ARGUMENT.
Status check_position(RankPosition position, size_t index, size_t count);

}  // namespace shardwright::plan

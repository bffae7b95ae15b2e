// SPDX-License-Identifier: Apache-2.0
//
// Drawing a name for a new generation.
#pragma once

#include <string>

#include "core/exec/runtime.h"

namespace shardwright::exec::internal {

// 32 lower-case hex digits: 48 bits of milliseconds since 1970, then 80 random bits. Later ones
// sort behind earlier ones.
Result<std::string> draw_generation(Runtime& runtime);

}  // namespace shardwright::exec::internal

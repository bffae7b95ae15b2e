// SPDX-License-Identifier: Apache-2.0
//
// Digest of plan bytes and option texts: XXH3-128 in canonical big-endian byte order. Pure
// function.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/plan/save/save_plan.h"

namespace shardwright::plan::internal {

Digest128 plan_bytes_digest(std::span<const std::byte> bytes);
Digest128 plan_text_digest(std::string_view text);

}  // namespace shardwright::plan::internal

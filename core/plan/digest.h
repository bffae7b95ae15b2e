// SPDX-License-Identifier: Apache-2.0
//
// What plans, contents and option texts are compared by. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/base/digest128.h"

namespace shardwright::plan {

using shardwright::Digest128;

// Of the bytes of a plan, or of what replicas must have alike.
Digest128 content_digest(std::span<const std::byte> bytes);
// Of the "option=value" lines that all ranks must have alike.
Digest128 options_text_digest(std::string_view text);

}  // namespace shardwright::plan

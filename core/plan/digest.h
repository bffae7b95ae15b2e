// SPDX-License-Identifier: Apache-2.0
//
// Digest128: what plans, contents and option texts are compared by: XXH3-128 in canonical
// big-endian byte order, equal on every machine. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace shardwright::plan {

using Digest128 = std::array<std::byte, 16>;

// Of the bytes of a plan, or of what replicas must have alike.
Digest128 content_digest(std::span<const std::byte> bytes);
// Of the "option=value" lines that all ranks must have alike.
Digest128 options_text_digest(std::string_view text);

}  // namespace shardwright::plan

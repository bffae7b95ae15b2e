// SPDX-License-Identifier: Apache-2.0
//
// Form of a generation id. Pure function.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace shardwright {

inline constexpr size_t kGenerationDigits = 32;

// So many lower-case hex digits.
inline bool is_generation_id(std::string_view text) {
  return text.size() == kGenerationDigits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace shardwright

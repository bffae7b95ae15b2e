// SPDX-License-Identifier: Apache-2.0
//
// Form of a generation id. Pure function.
#pragma once

#include <algorithm>
#include <string_view>

namespace shardwright::plan {

// 32 lower-case hex digits.
inline bool is_generation_text(std::string_view text) {
  return text.size() == 32 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace shardwright::plan

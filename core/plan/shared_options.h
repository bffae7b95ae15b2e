// SPDX-License-Identifier: Apache-2.0
//
// What all ranks of a call must say alike, as "option=value" lines; and the sentence for ranks that
// do not. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/status.h"

namespace shardwright::plan {

struct RankOptions {
  int32_t rank = 0;
  std::string_view text;  // "option=value" lines
};
// INVALID_ARGUMENT naming the first line in which the two texts, which are not equal, differ.
Status options_differ(const RankOptions& first, const RankOptions& other);

}  // namespace shardwright::plan

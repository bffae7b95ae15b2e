// SPDX-License-Identifier: Apache-2.0
//
// What all ranks of a call must say alike, as "option=value" lines; and the sentence for ranks that
// do not. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/digest128.h"
#include "core/base/status.h"
#include "core/plan/plan_options.h"

namespace shardwright::plan {

std::string save_rules_text(const SaveRules& rules);
Digest128 options_text_digest(std::string_view text);

struct RankOptions {
  int32_t rank = 0;
  std::string_view text;
};
// INVALID_ARGUMENT naming the first line in which the two texts, which are not equal, differ.
Status options_differ(const RankOptions& first, const RankOptions& other);

}  // namespace shardwright::plan

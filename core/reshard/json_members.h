// SPDX-License-Identifier: Apache-2.0
//
// Typed members of JSON objects. All fail with INVALID_ARGUMENT with line and column. Pure.
#pragma once

#include <string>
#include <string_view>

#include "core/base/json_tree.h"
#include "core/base/result.h"
#include "core/tensor/dims.h"

namespace shardwright::reshard {

// what: "a map".
Status want_object(JsonValueView value, std::string_view what);
// A text that must be there.
Result<std::string> read_text(JsonValueView object, std::string_view key);
// A list of numbers from 0 on, which must be there.
Result<Dims> read_numbers(JsonValueView object, std::string_view key);

}  // namespace shardwright::reshard

// SPDX-License-Identifier: Apache-2.0
//
// The safetensors format for a table: one file, or the files of a directory.
#pragma once

#include <memory>
#include <string_view>

#include "core/format/format.h"

namespace shardwright::format::safetensors {

inline constexpr std::string_view kFormatName = "safetensors";

std::unique_ptr<const Format> make_format();

}  // namespace shardwright::format::safetensors

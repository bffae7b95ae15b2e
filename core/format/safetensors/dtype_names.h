// SPDX-License-Identifier: Apache-2.0
//
// Names of dtypes in safetensors headers. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/tensor/dtype.h"

namespace shardwright::format::safetensors {

std::optional<DType> dtype_of(std::string_view name);
// "" for a dtype that the format lacks.
std::string_view name_of(DType dtype);
// Place among the dtypes of the format as its package counts them; its writer puts those of higher
// places first. The dtype has a name.
uint32_t place_of(DType dtype);
std::string known_dtypes();  // "BOOL, F4, ..."

}  // namespace shardwright::format::safetensors

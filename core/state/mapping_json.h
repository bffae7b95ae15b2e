// SPDX-License-Identifier: Apache-2.0
//
// A mapping that is a part of another JSON text, whose places failures name. Pure.
#pragma once

#include <span>

#include "core/base/json_tree.h"
#include "core/base/result.h"
#include "core/state/mapping.h"

namespace shardwright {

// As Mapping::parse of the text of the value alone.
Result<Mapping> read_mapping(JsonValueView root, std::span<const MappingParameter> parameters);

}  // namespace shardwright

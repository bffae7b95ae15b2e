// SPDX-License-Identifier: Apache-2.0
//
// The arguments of a job of Megatron, a Namespace in a pickle, with other sizes of its parallel
// groups. Nothing of it is run. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace shardwright::reshard {

using ArgumentSizes = std::map<std::string, int64_t, std::less<>>;

// The object once more; integers of dicts whose keys are in sizes have the value there, and nothing
// is added. UNIMPLEMENTED for a type that is no pickle, DATA_LOSS for a damaged one.
Result<std::vector<std::byte>> set_argument_sizes(std::span<const std::byte> bytes,
                                                  std::string_view content_type,
                                                  const ArgumentSizes& sizes);

}  // namespace shardwright::reshard

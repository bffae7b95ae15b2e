// SPDX-License-Identifier: Apache-2.0
//
// What a byte object is, as JSON for people. Nothing of it is run. Pure, any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace shardwright::format {

// {"content_type": ..., "bytes": n, "value": ...}: JSON is itself; of a pickle, and of an archive
// of torch.save, the value as describe_value says it; text as text; null for anything else. name:
// for messages. DATA_LOSS for a pickle or archive that is damaged.
Result<std::string> describe_object(std::span<const std::byte> bytes, std::string_view content_type,
                                    std::string_view name);

}  // namespace shardwright::format

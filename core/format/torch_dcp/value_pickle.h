// SPDX-License-Identifier: Apache-2.0
//
// Byte objects of a state as the items of torch.distributed.checkpoint that torch.load reads:
//   application/json           the plain value that the text says, in torch's pickle protocol (2)
//   application/python-pickle  the value that the pickle says, untouched
//   application/x-torch-save   the archive that it is
//   any other type             bytes
// Pure, any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/format/torch_dcp/item_archive.h"

namespace shardwright::format::torch_dcp {

// Whether an object of the type is stored as it is.
bool is_stored_bare(std::string_view content_type);

// The item of an object that is not stored bare. INVALID_ARGUMENT for JSON that is none.
Result<std::vector<std::byte>> object_item(Framing framing, std::string_view content_type,
                                           std::span<const std::byte> bytes);

// The pickle of a value that JSON says, tagged forms ({"$tuple": [...]}, {"$map": [[key, value],
// ...]}, {"$float": "nan"}) included.
Result<std::string> pickle_of_json(std::string_view text);

}  // namespace shardwright::format::torch_dcp

// SPDX-License-Identifier: Apache-2.0
//
// Names of byte objects that are cells of a grid, as Megatron Core has them: the key, "/shard_",
// the offsets joined by ".", "_" and the shape of the grid joined by ".". Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/tensor/dims.h"

namespace shardwright {

struct ObjectKey {
  std::string key;
  Dims offsets;
  Dims shape;  // -1 at the end: older names that leave it out
};

// "key/shard_0.3_1.8". INVALID_ARGUMENT: different counts, none, an offset outside the shape, an
// extent that is not positive.
Result<std::string> format_object_key(std::string_view key, std::span<const int64_t> offsets,
                                      std::span<const int64_t> shape);
// What format_object_key made, whatever the key: the last "/shard_" counts. A shape that has one
// extent less than there are offsets gets -1 as its last. INVALID_ARGUMENT for any other text.
Result<ObjectKey> parse_object_key(std::string_view name);
// The two halves of that: what the text says, a cell inside of its grid or not; and whether it is
// inside, which no cell is at the last int64_t.
Result<ObjectKey> split_object_key(std::string_view name);
Status check_object_cell(const ObjectKey& name);

}  // namespace shardwright

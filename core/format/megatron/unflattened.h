// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint whose N-D flattened tensors (flat_boxes.h) have the shapes that they were saved
// with: each stored range is a few boxes, of which a reader reads those that it wants. Which
// tensors these are stands in an attribute of the index, "mcore_data".
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/result.h"
#include "core/format/opened_checkpoint.h"

namespace shardwright::format::megatron {

inline constexpr uint64_t kFreeFlatBoxes = 65536;
inline constexpr uint64_t kFlatBoxesPerChunk = 16;

// The checkpoint itself when it has no such tensor. DATA_LOSS for an attribute that is none, a
// chunk that is no range of one box, and for sizes that do not fit the shape; RESOURCE_EXHAUSTED
// for more boxes than kFlatBoxesPerChunk for each chunk and kFreeFlatBoxes.
Result<std::shared_ptr<const OpenedCheckpoint>> unflattened(
    const Location& location, std::shared_ptr<const OpenedCheckpoint> data);

}  // namespace shardwright::format::megatron

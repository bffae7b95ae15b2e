// SPDX-License-Identifier: Apache-2.0
//
// What is stored as Zstandard frames, as items of torch's transform "stream.zstd" are. How much may
// come of them is said by the caller, and neither the sizes nor the windows that frames claim are
// believed beyond that. Pure but for the reads, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/format/archive/archive_bytes.h"

namespace shardwright::format::archive {

// All that the frames hold, or its first wanted_bytes. DATA_LOSS naming file and offset for what is
// no sound frame, is cut short, or holds more than most_bytes; RESOURCE_EXHAUSTED for a frame whose
// window is far larger than what it may hold.
Result<std::vector<std::byte>> unpack_zstd(const ArchiveBytes& stored, uint64_t most_bytes,
                                           uint64_t wanted_bytes = UINT64_MAX);

}  // namespace shardwright::format::archive

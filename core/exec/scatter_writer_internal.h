// SPDX-License-Identifier: Apache-2.0
//
// Writes a part of an item whose bytes do not lie together in the file.
#pragma once

#include <cstddef>
#include <span>

#include "core/exec/write_tasks_internal.h"
#include "core/storage/storage.h"

namespace shardwright::exec::internal {

// bytes: those of the task, which is one of a scattered item of the layout; object is open for
// writing at positions. Thread-safe for different tasks.
Status write_scattered(storage::StorageObject& object, const format::FileLayout& layout,
                       const WriteTask& task, std::span<const std::byte> bytes);

}  // namespace shardwright::exec::internal

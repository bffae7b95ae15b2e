// SPDX-License-Identifier: Apache-2.0
//
// PartWriter: the bytes of an object in ascending order, gathered to the parts of a multipart
// upload: each holds at least part_bytes but the last. One block of staging memory, which is taken
// before anything is written and given back with the writer. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/limits.h"
#include "core/concurrency/buffer_pool.h"
#include "core/storage/storage.h"

namespace shardwright::exec::internal {

class PartWriter {
 public:
  static constexpr uint64_t kMostRoomBytes = kWriteBlockBytes;

  // The object outlives the writer.
  PartWriter(storage::StorageObject& object, uint64_t part_bytes)
      : object_(object), part_bytes_(part_bytes) {}

  // First. RESOURCE_EXHAUSTED when the budget holds no part.
  Status acquire(BufferPool& staging, const CallControl& control);
  // Memory for the next bytes, at most kMostRoomBytes; valid until filled says that they are there.
  std::span<std::byte> room(uint64_t size_bytes) const;
  Status filled(uint64_t size_bytes);
  Status append(std::span<const std::byte> bytes);
  // Writes what is left as the last part.
  Status finish();

 private:
  Status write_part();

  storage::StorageObject& object_;
  uint64_t part_bytes_;
  uint64_t offset_ = 0;      // of the part that is gathered
  uint64_t size_bytes_ = 0;  // gathered so far
  StagingBuffer memory_;
};

}  // namespace shardwright::exec::internal

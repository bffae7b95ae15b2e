// SPDX-License-Identifier: Apache-2.0
//
// KeptMemory: one large block for one user after the other, such as the copies of asynchronous
// saves. What the last user gave back is kept for the next, whose pages are then there already. At
// most one unused block is kept: the larger. It is released with this object, and when the next
// user needs a larger one, before that is made. Its pages are never lent to the system in between:
// to write into pages that it might take costs as much as the copy (measured). Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/result.h"
#include "core/concurrency/allocator_hooks.h"

namespace shardwright {

class KeptMemory {
 public:
  explicit KeptMemory(AllocatorHooks hooks = {});
  ~KeptMemory();
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  struct Block {
    // Given back when the last copy of the pointer goes, on any thread, also after the KeptMemory
    // has gone; co-owned by whoever reads it. Null for 0 bytes.
    std::shared_ptr<std::byte> memory;
    // All pages are there. Otherwise the user makes them in bulk (populate_pages), on the thread
    // that fills them.
    bool is_resident = false;
  };
  // At least size_bytes of host memory with any content, aligned to 4 KiB. RESOURCE_EXHAUSTED when
  // system or host refuses it.
  Result<Block> acquire(uint64_t size_bytes);
  // Bytes of the unused block, 0 when there is none.
  uint64_t kept_bytes() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // co-owned by the blocks that are in use
};

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
//
// KeptMemory: one large block for one user after the other, such as the copies of asynchronous
// saves. What the last user gave back is kept for the next, whose pages are then there already; in
// between it is free for the system to take. At most one unused block is kept: the larger.
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/result.h"

namespace shardwright {

class KeptMemory {
 public:
  KeptMemory();
  ~KeptMemory();
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  // At least size_bytes of host memory with any content, aligned to 4 KiB; null for 0. It is given
  // back when the last copy of the pointer goes, on any thread, also after this has gone.
  // RESOURCE_EXHAUSTED when the system refuses it.
  Result<std::shared_ptr<std::byte>> acquire(uint64_t size_bytes);
  // Bytes of the unused block, 0 when there is none.
  uint64_t kept_bytes() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // co-owned by the blocks that are in use
};

}  // namespace shardwright

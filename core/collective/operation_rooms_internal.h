// SPDX-License-Identifier: Apache-2.0
//
// OperationRooms: memory of operations that are made of others. What was given back is kept for the
// next operation of about its size, whose pages are there already then: filling fresh pages takes
// longer than moving the bytes. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "core/concurrency/mutex.h"

namespace shardwright::collective::internal {

class OperationRooms {
 public:
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    size_t size = 0;
  };

  // At least size_bytes; content undefined. std::bad_alloc.
  Block take(size_t size_bytes) SHW_EXCLUDES(mutex_);
  // Keeps the largest.
  void give_back(Block block) noexcept SHW_EXCLUDES(mutex_);

 private:
  static constexpr size_t kKept = 2;  // one under way, and one of another size beside it

  Mutex mutex_;
  std::array<Block, kKept> kept_ SHW_GUARDED_BY(mutex_);
};

}  // namespace shardwright::collective::internal

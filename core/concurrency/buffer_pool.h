// SPDX-License-Identifier: Apache-2.0
//
// BufferPool: staging memory of a context, bounded in bytes, aligned for direct I/O (4 KiB),
// faulted when made and kept for reuse until trim(). acquire blocks while the budget is spent
// (back-pressure), so queues never grow without bound. Buffers of one rounded size are reused for
// each other; when unused ones of other sizes fill the budget, they are given back to the system
// first. Waiting requests are served in no fixed order. All buffers go back before the pool does.
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/result.h"
#include "core/concurrency/allocator_hooks.h"
#include "core/concurrency/cancellation.h"

namespace shardwright {

class BufferPool;

// A block of staging memory; goes back to its pool when destroyed. Move-only.
class StagingBuffer {
 public:
  StagingBuffer() = default;
  StagingBuffer(StagingBuffer&& other) noexcept;
  StagingBuffer& operator=(StagingBuffer&& other) noexcept;
  ~StagingBuffer();
  std::span<std::byte> bytes() const { return bytes_; }
  explicit operator bool() const { return !bytes_.empty(); }

 private:
  friend class BufferPool;
  BufferPool* pool_ = nullptr;
  std::span<std::byte> bytes_;
};

class BufferPool {
 public:
  BufferPool(uint64_t budget_bytes, AllocatorHooks hooks);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  uint64_t budget_bytes() const;
  // A buffer of exactly size_bytes (rounded up to 4 KiB inside; 0 gives an empty buffer). Waits
  // while others hold the budget; a request above the whole budget is RESOURCE_EXHAUSTED (resource
  // memory) naming both numbers. CANCELLED and DEADLINE_EXCEEDED come from control.
  Result<StagingBuffer> acquire(uint64_t size_bytes, const CallControl& control);
  // The same without waiting: an empty buffer where acquire would wait or give unused buffers of
  // other sizes up. For whoever holds a buffer already, so that nobody waits for those who wait.
  Result<StagingBuffer> try_acquire(uint64_t size_bytes);
  // Bytes held in all (in use and kept), and the highest value ever.
  uint64_t held_bytes() const;
  uint64_t peak_bytes() const;
  // Gives unused buffers back to the system.
  void trim();

 private:
  friend class StagingBuffer;
  struct Shared;
  void give_back(std::span<std::byte> bytes);
  // An unused buffer of that size, or null when its bytes are now in the caller's account and the
  // memory is to be made.
  Result<void*> claim(uint64_t rounded, const CallControl& control);
  // memory: what was claimed for size_bytes, or null to make it.
  Result<StagingBuffer> buffer_of(void* memory, uint64_t size_bytes);
  std::unique_ptr<Shared> shared_;
};

}  // namespace shardwright

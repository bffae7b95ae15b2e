// SPDX-License-Identifier: Apache-2.0
//
// Accounting first, memory second: a request takes its bytes from the budget under the mutex and
// then allocates without it. Buffers that would have to be given up for it are unlinked under the
// mutex and released afterwards. The bytes of a buffer that is being released still count until it
// is gone.
#include "core/concurrency/buffer_pool.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/huge_pages.h"
#include "core/base/limits.h"
#include "core/concurrency/mutex.h"

namespace shardwright {
namespace {

constexpr uint64_t kBufferAlignmentBytes = kExtentAlignmentBytes;
constexpr int64_t kCancellationSliceNs =
    10 * 1000 * 1000;  // a cancelled waiter notices within this

void touch_pages(void* memory, uint64_t size_bytes) {
  auto* bytes = static_cast<volatile std::byte*>(memory);
  for (uint64_t at = 0; at < size_bytes; at += kBufferAlignmentBytes) bytes[at] = std::byte{0};
}

void* make_system_memory(uint64_t size_bytes) {
  void* memory = map_memory(size_bytes);
  if (memory != nullptr && !populate_pages(memory, size_bytes)) touch_pages(memory, size_bytes);
  return memory;
}

uint64_t rounded_bytes(uint64_t size_bytes) {
  uint64_t rounded = 0;
  return checked_round_up(size_bytes, kBufferAlignmentBytes, &rounded) ? rounded : UINT64_MAX;
}

// Unused memory on its way back to the system.
struct Block {
  void* memory = nullptr;
  uint64_t size_bytes = 0;
};

}  // namespace

struct BufferPool::Shared {
  Shared(uint64_t budget_bytes, const AllocatorHooks& allocator)
      : budget(budget_bytes), hooks(allocator) {}

  const uint64_t budget;
  const AllocatorHooks hooks;
  Mutex mutex;
  Condition changed;
  std::map<uint64_t, std::vector<void*>> unused SHW_GUARDED_BY(mutex);  // by rounded size
  uint64_t unused_bytes SHW_GUARDED_BY(mutex) = 0;
  uint64_t held_bytes SHW_GUARDED_BY(mutex) = 0;
  uint64_t peak_bytes SHW_GUARDED_BY(mutex) = 0;

  bool uses_hooks() const { return hooks.allocate != nullptr && hooks.release != nullptr; }

  Result<void*> make(uint64_t size_bytes) const SHW_EXCLUDES(mutex) {
    void* memory = uses_hooks() ? hooks.allocate(hooks.user, size_bytes, kBufferAlignmentBytes)
                                : make_system_memory(size_bytes);
    if (memory == nullptr) {
      return resource_exhausted(
          "memory", fmt::format("the {} refused {} bytes of staging memory",
                                uses_hooks() ? "host allocator" : "system", size_bytes));
    }
    if (!uses_hooks()) return memory;
    if (reinterpret_cast<uintptr_t>(memory) % kBufferAlignmentBytes != 0) {
      hooks.release(hooks.user, memory, size_bytes, kBufferAlignmentBytes);
      return invalid_argument(fmt::format(
          "the host allocator gave memory that is not aligned to {} bytes", kBufferAlignmentBytes));
    }
    touch_pages(memory, size_bytes);
    return memory;
  }

  void destroy(const Block& block) const SHW_EXCLUDES(mutex) {
    if (uses_hooks()) {
      hooks.release(hooks.user, block.memory, block.size_bytes, kBufferAlignmentBytes);
    } else {
      unmap_memory(block.memory, block.size_bytes);
    }
  }

  // Unlinks an unused buffer of that size; null when there is none.
  void* take_unused(uint64_t size_bytes) SHW_REQUIRES(mutex) {
    const auto found = unused.find(size_bytes);
    if (found == unused.end()) return nullptr;
    void* memory = found->second.back();
    found->second.pop_back();
    if (found->second.empty()) unused.erase(found);
    unused_bytes -= size_bytes;
    return memory;
  }

  // Unlinks unused buffers, largest first, until wanted_bytes more fit the budget without them.
  // Their bytes count until destroy_all has released them.
  std::vector<Block> give_up(uint64_t wanted_bytes) SHW_REQUIRES(mutex) {
    std::vector<Block> blocks;
    uint64_t freed = 0;
    while (held_bytes - freed > budget - wanted_bytes && !unused.empty()) {
      const uint64_t size_bytes = unused.rbegin()->first;
      Block& block = blocks.emplace_back();  // before anything is unlinked, for it may throw
      block = {take_unused(size_bytes), size_bytes};
      freed += size_bytes;
    }
    return blocks;
  }

  void release_account(uint64_t bytes) SHW_EXCLUDES(mutex) {
    {
      MutexLock lock(mutex);
      held_bytes -= bytes;
    }
    changed.notify_all();
  }

  void destroy_all(const std::vector<Block>& blocks) SHW_EXCLUDES(mutex) {
    uint64_t bytes = 0;
    for (const Block& block : blocks) {
      destroy(block);
      bytes += block.size_bytes;
    }
    release_account(bytes);
  }

  // Releases what is unused; needs no memory.
  void destroy_unused() SHW_EXCLUDES(mutex) {
    std::map<uint64_t, std::vector<void*>> unlinked;
    {
      MutexLock lock(mutex);
      unlinked.swap(unused);
      unused_bytes = 0;
    }
    uint64_t bytes = 0;
    for (const auto& [size_bytes, memories] : unlinked) {
      for (void* memory : memories) destroy({memory, size_bytes});
      bytes += size_bytes * memories.size();
    }
    release_account(bytes);
  }
};

BufferPool::BufferPool(uint64_t budget_bytes, AllocatorHooks hooks)
    : shared_(std::make_unique<Shared>(budget_bytes, hooks)) {}

BufferPool::~BufferPool() {
  trim();
}

uint64_t BufferPool::budget_bytes() const {
  return shared_->budget;
}

uint64_t BufferPool::held_bytes() const {
  MutexLock lock(shared_->mutex);
  return shared_->held_bytes;
}

uint64_t BufferPool::peak_bytes() const {
  MutexLock lock(shared_->mutex);
  return shared_->peak_bytes;
}

void BufferPool::trim() {
  shared_->destroy_unused();
}

Result<void*> BufferPool::claim(uint64_t rounded, const CallControl& control) {
  while (true) {
    std::vector<Block> given_up;
    {
      MutexLock lock(shared_->mutex);
      while (true) {
        SHW_RETURN_IF_ERROR(control.check("waiting for staging memory"));
        if (void* memory = shared_->take_unused(rounded)) return memory;
        const uint64_t in_use = shared_->held_bytes - shared_->unused_bytes;
        if (rounded <= shared_->budget - in_use) break;
        shared_->changed.wait_for(shared_->mutex, kCancellationSliceNs);
      }
      given_up = shared_->give_up(rounded);
      if (given_up.empty()) {
        shared_->held_bytes += rounded;
        shared_->peak_bytes = std::max(shared_->peak_bytes, shared_->held_bytes);
        return nullptr;
      }
    }
    shared_->destroy_all(given_up);  // then look again: the room may be taken meanwhile
  }
}

Result<StagingBuffer> BufferPool::acquire(uint64_t size_bytes, const CallControl& control) {
  const uint64_t rounded = rounded_bytes(size_bytes);
  if (rounded > shared_->budget) {
    return resource_exhausted(
        "memory", fmt::format("{} bytes of staging memory are more than the whole budget "
                              "of {} bytes; raise memory_budget",
                              size_bytes, shared_->budget));
  }
  if (size_bytes == 0) return StagingBuffer();
  SHW_ASSIGN_OR_RETURN(void* memory, claim(rounded, control));
  return buffer_of(memory, size_bytes);
}

Result<StagingBuffer> BufferPool::try_acquire(uint64_t size_bytes) {
  const uint64_t rounded = rounded_bytes(size_bytes);
  if (size_bytes == 0) return StagingBuffer();
  void* memory = nullptr;
  {
    MutexLock lock(shared_->mutex);
    memory = shared_->take_unused(rounded);
    if (memory == nullptr) {
      if (rounded > shared_->budget - shared_->held_bytes) return StagingBuffer();
      shared_->held_bytes += rounded;
      shared_->peak_bytes = std::max(shared_->peak_bytes, shared_->held_bytes);
    }
  }
  return buffer_of(memory, size_bytes);
}

Result<StagingBuffer> BufferPool::buffer_of(void* memory, uint64_t size_bytes) {
  const uint64_t rounded = rounded_bytes(size_bytes);
  StagingBuffer buffer;
  if (memory == nullptr) {
    Result<void*> made = shared_->make(rounded);
    if (!made.ok()) {
      shared_->release_account(rounded);
      return made.status();
    }
    memory = *made;
  }
  buffer.pool_ = this;
  buffer.bytes_ = {static_cast<std::byte*>(memory), size_bytes};
  return buffer;
}

void BufferPool::give_back(std::span<std::byte> bytes) {
  const uint64_t rounded = rounded_bytes(bytes.size());
  bool kept = false;
  {
    MutexLock lock(shared_->mutex);
    try {
      shared_->unused[rounded].push_back(bytes.data());
      shared_->unused_bytes += rounded;
      kept = true;
    } catch (const std::bad_alloc&) {
      // No memory to remember it by: it goes back to the system below.
      const auto empty = shared_->unused.find(rounded);
      if (empty != shared_->unused.end() && empty->second.empty()) shared_->unused.erase(empty);
    }
  }
  if (kept) {
    shared_->changed.notify_all();
  } else {
    shared_->destroy({bytes.data(), rounded});
    shared_->release_account(rounded);
  }
}

StagingBuffer::StagingBuffer(StagingBuffer&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), bytes_(std::exchange(other.bytes_, {})) {}

StagingBuffer& StagingBuffer::operator=(StagingBuffer&& other) noexcept {
  if (this == &other) return *this;
  if (pool_ != nullptr) pool_->give_back(bytes_);
  pool_ = std::exchange(other.pool_, nullptr);
  bytes_ = std::exchange(other.bytes_, {});
  return *this;
}

StagingBuffer::~StagingBuffer() {
  if (pool_ != nullptr) pool_->give_back(bytes_);
}

}  // namespace shardwright

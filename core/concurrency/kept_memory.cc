// SPDX-License-Identifier: Apache-2.0
//
// The kept block is unlinked under the mutex; memory is mapped and unmapped without it.
#include "core/concurrency/kept_memory.h"

#include <utility>

#include <fmt/format.h>

#include "core/base/huge_pages.h"
#include "core/base/limits.h"
#include "core/concurrency/mutex.h"

namespace shardwright {
namespace {

// Owns mapped memory; empty when null.
class KeptBlock {
 public:
  KeptBlock() = default;
  KeptBlock(void* memory, uint64_t size_bytes) : memory_(memory), size_bytes_(size_bytes) {}
  KeptBlock(KeptBlock&& other) noexcept { swap(other); }
  KeptBlock& operator=(KeptBlock&& other) noexcept {
    swap(other);
    return *this;
  }
  ~KeptBlock() {
    if (memory_ != nullptr) unmap_memory(memory_, size_bytes_);
  }
  void* memory() const { return memory_; }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  void swap(KeptBlock& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_bytes_, other.size_bytes_);
  }
  void* memory_ = nullptr;
  uint64_t size_bytes_ = 0;
};

}  // namespace

struct KeptMemory::Shared {
  mutable Mutex mutex;
  KeptBlock kept SHW_GUARDED_BY(mutex);
  bool closed SHW_GUARDED_BY(mutex) = false;

  // The kept block when it is large enough; else it goes, so that two are never held for one user.
  KeptBlock take(uint64_t size_bytes) SHW_EXCLUDES(mutex) {
    KeptBlock taken;
    {
      const MutexLock lock(mutex);
      taken = std::move(kept);
    }
    return taken.size_bytes() >= size_bytes ? std::move(taken) : KeptBlock();
  }

  void give_back(KeptBlock block) noexcept SHW_EXCLUDES(mutex) {
    lend_pages(block.memory(), block.size_bytes());
    const MutexLock lock(mutex);
    // What loses is unmapped after the lock went.
    if (!closed && block.size_bytes() > kept.size_bytes()) kept = std::move(block);
  }

  void close() SHW_EXCLUDES(mutex) {
    KeptBlock last;
    const MutexLock lock(mutex);
    closed = true;
    last = std::move(kept);
  }
};

KeptMemory::KeptMemory() : shared_(std::make_shared<Shared>()) {}

KeptMemory::~KeptMemory() {
  shared_->close();
}

uint64_t KeptMemory::kept_bytes() const {
  const MutexLock lock(shared_->mutex);
  return shared_->kept.size_bytes();
}

Result<std::shared_ptr<std::byte>> KeptMemory::acquire(uint64_t size_bytes) {
  if (size_bytes == 0) return std::shared_ptr<std::byte>();
  KeptBlock block = shared_->take(size_bytes);
  if (block.memory() == nullptr) block = KeptBlock(map_memory(size_bytes), size_bytes);
  if (block.memory() == nullptr) {
    return resource_exhausted(
               "memory", fmt::format("the system refused {} bytes of staging memory", size_bytes))
        .with_detail("length", fmt::to_string(size_bytes));
  }
  auto* const bytes = static_cast<std::byte*>(block.memory());
  // Owns the block from here on: also when the control block of the pointer cannot be had.
  auto owner =
      std::make_shared<std::pair<std::shared_ptr<Shared>, KeptBlock>>(shared_, KeptBlock());
  owner->second = std::move(block);
  return std::shared_ptr<std::byte>(
      bytes, [owner](std::byte*) { owner->first->give_back(std::move(owner->second)); });
}

}  // namespace shardwright

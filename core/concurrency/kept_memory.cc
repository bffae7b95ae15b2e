// SPDX-License-Identifier: Apache-2.0
//
// The kept block is unlinked under the mutex; memory is made and released without it. Pages are of
// the size that the system gives by itself: huge ones that were never used before can cost many
// times the copy that fills them (a virtual machine gets them from its host then), and save little.
#include "core/concurrency/kept_memory.h"

#include <utility>

#include <fmt/format.h>

#include "core/base/huge_pages.h"
#include "core/base/limits.h"
#include "core/concurrency/mutex.h"

namespace shardwright {
namespace {

constexpr uint64_t kBlockAlignmentBytes = kExtentAlignmentBytes;

// Owns memory of the system or of the hooks; empty when null.
class KeptBlock {
 public:
  KeptBlock() = default;
  KeptBlock(const AllocatorHooks& hooks, uint64_t size_bytes)
      : hooks_(hooks),
        size_bytes_(size_bytes),
        memory_(hooks.allocate == nullptr
                    ? map_small_pages(size_bytes)
                    : hooks.allocate(hooks.user, size_bytes, kBlockAlignmentBytes)) {}
  KeptBlock(KeptBlock&& other) noexcept { swap(other); }
  KeptBlock& operator=(KeptBlock&& other) noexcept {
    swap(other);
    return *this;
  }
  ~KeptBlock() {
    if (memory_ == nullptr) return;
    if (hooks_.allocate == nullptr) {
      unmap_memory(memory_, size_bytes_);
    } else {
      hooks_.release(hooks_.user, memory_, size_bytes_, kBlockAlignmentBytes);
    }
  }
  void* memory() const { return memory_; }
  uint64_t size_bytes() const { return memory_ == nullptr ? 0 : size_bytes_; }

 private:
  void swap(KeptBlock& other) noexcept {
    std::swap(hooks_, other.hooks_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(memory_, other.memory_);
  }
  AllocatorHooks hooks_;
  uint64_t size_bytes_ = 0;
  void* memory_ = nullptr;
};

}  // namespace

struct KeptMemory::Shared {
  explicit Shared(const AllocatorHooks& given) : hooks(given) {}

  const AllocatorHooks hooks;
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
    const MutexLock lock(mutex);
    // What loses is released after the lock went.
    if (!closed && block.size_bytes() > kept.size_bytes()) kept = std::move(block);
  }

  void close() SHW_EXCLUDES(mutex) {
    KeptBlock last;
    const MutexLock lock(mutex);
    closed = true;
    last = std::move(kept);
  }
};

KeptMemory::KeptMemory(AllocatorHooks hooks) : shared_(std::make_shared<Shared>(hooks)) {}

KeptMemory::~KeptMemory() {
  shared_->close();
}

uint64_t KeptMemory::kept_bytes() const {
  const MutexLock lock(shared_->mutex);
  return shared_->kept.size_bytes();
}

Result<KeptMemory::Block> KeptMemory::acquire(uint64_t size_bytes) {
  if (size_bytes == 0) return Block();
  KeptBlock block = shared_->take(size_bytes);
  const bool was_kept = block.memory() != nullptr;  // its last user has filled it
  if (!was_kept) block = KeptBlock(shared_->hooks, size_bytes);
  if (block.memory() == nullptr) {
    return resource_exhausted(
               "memory", fmt::format("{} refused {} bytes of staging memory",
                                     shared_->hooks.allocate == nullptr ? "the system"
                                                                        : "the host's allocator",
                                     size_bytes))
        .with_detail("length", fmt::to_string(size_bytes));
  }
  auto* const bytes = static_cast<std::byte*>(block.memory());
  // Owns the block from here on: also when the control block of the pointer cannot be had.
  auto owner =
      std::make_shared<std::pair<std::shared_ptr<Shared>, KeptBlock>>(shared_, KeptBlock());
  owner->second = std::move(block);
  return Block{
      std::shared_ptr<std::byte>(
          bytes, [owner](std::byte*) { owner->first->give_back(std::move(owner->second)); }),
      was_kept};
}

}  // namespace shardwright

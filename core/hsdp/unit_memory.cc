// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/unit_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/concurrency/mutex.h"

namespace shardwright::hsdp {
namespace internal {
namespace {

constexpr uint64_t kMemoryStepBytes = 64;
constexpr uint64_t kIdlePart = 4;  // kept memory serves what leaves at most 1/4 as much idle in it

}  // namespace

class MemoryStore {
 public:
  MemoryStore(std::shared_ptr<device::LaneDevice> device, std::shared_ptr<device::MemoryWork> work,
              MemoryPlace place)
      : device_(std::move(device)), work_(std::move(work)), place_(place) {}
  ~MemoryStore() { release_kept(0); }

  Result<std::span<std::byte>> take(BufferKind kind, uint64_t unit, uint64_t bytes) {
    uint64_t size = 0;
    if (!checked_round_up(bytes, kMemoryStepBytes, &size))
      return resource_exhausted("memory", "a buffer of a unit is larger than the address space");
    uint64_t keep_bytes = 0;
    {
      MutexLock lock(mutex_);
      ledger_.open(unit);
      const auto best = best_kept(size);
      const bool is_there = best != kept_.end();
      if (size == 0 || is_there) {
        ledger_.add(kind, unit, bytes);
        return is_there ? reuse(best) : Memory();
      }
      kept_.reserve(made_count_ + 1);
      ledger_.add(kind, unit, bytes);
      ++made_count_;
      use(size);
      keep_bytes = most_in_use_bytes_ - in_use_bytes_;
    }
    release_kept(keep_bytes);
    Result<Memory> made = allocate(size);
    if (!made.ok()) {
      release_kept(0);
      made = allocate(size);
    }
    if (made.ok()) return made;
    MutexLock lock(mutex_);
    --made_count_;
    in_use_bytes_ -= size;
    ledger_.remove(kind, unit, bytes);
    return made;
  }

  // bytes: that were asked for.
  void give_back(BufferKind kind, uint64_t unit, uint64_t bytes,
                 std::span<std::byte> memory) noexcept {
    MutexLock lock(mutex_);
    ledger_.remove(kind, unit, bytes);
    if (memory.empty()) return;
    in_use_bytes_ -= memory.size();
    kept_bytes_ += memory.size();
    kept_.push_back(memory);  // has room for all that were made
  }

  void move(BufferKind from, BufferKind to, uint64_t bytes) noexcept {
    MutexLock lock(mutex_);
    ledger_.move(from, to, bytes);
  }

  MemoryStats stats() const {
    MutexLock lock(mutex_);
    return ledger_.stats();
  }

  void reset_peaks() noexcept {
    MutexLock lock(mutex_);
    ledger_.reset_peaks();
  }

  uint64_t held_bytes() const {
    MutexLock lock(mutex_);
    return in_use_bytes_ + kept_bytes_;
  }

  // Those that have been kept for longest go, until at most so many bytes are kept. The device is
  // never called under the lock: it may be the host's.
  void release_kept(uint64_t most_bytes) noexcept {
    for (;;) {
      Memory memory;
      {
        MutexLock lock(mutex_);
        if (kept_bytes_ <= most_bytes) return;
        memory = kept_.front();
        kept_.erase(kept_.begin());
        kept_bytes_ -= memory.size();
        --made_count_;
      }
      release(memory);
    }
  }

 private:
  using Memory = std::span<std::byte>;

  Result<Memory> allocate(uint64_t size) {
    return place_ == MemoryPlace::kPinned ? device_->allocate_pinned(size)
                                          : device_->allocate(size);
  }
  void release(Memory memory) noexcept {
    if (work_ != nullptr) work_->settle();
    if (place_ == MemoryPlace::kPinned) {
      device_->release_pinned(memory);
    } else {
      device_->release(memory);
    }
  }

  void use(uint64_t size) SHW_REQUIRES(mutex_) {
    in_use_bytes_ += size;
    most_in_use_bytes_ = std::max(most_in_use_bytes_, in_use_bytes_);
  }

  Memory reuse(std::vector<Memory>::iterator kept) SHW_REQUIRES(mutex_) {
    const Memory memory = *kept;
    kept_bytes_ -= memory.size();
    kept_.erase(kept);
    use(memory.size());
    return memory;
  }

  std::vector<Memory>::iterator best_kept(uint64_t size) SHW_REQUIRES(mutex_) {
    auto best = kept_.end();
    for (auto each = kept_.begin(); each != kept_.end(); ++each) {
      if (each->size() < size || each->size() - size > size / kIdlePart) continue;
      // Of equal ones the last that came: its bytes may still be in a cache.
      if (best == kept_.end() || each->size() <= best->size()) best = each;
    }
    return best;
  }

  mutable Mutex mutex_;
  const std::shared_ptr<device::LaneDevice> device_;  // co-owned with the context
  const std::shared_ptr<device::MemoryWork> work_;    // likewise; may be null
  const MemoryPlace place_;
  MemoryLedger ledger_ SHW_GUARDED_BY(mutex_);
  std::vector<Memory> kept_ SHW_GUARDED_BY(mutex_);  // the last one came last
  size_t made_count_ SHW_GUARDED_BY(mutex_) = 0;     // in use and kept
  uint64_t kept_bytes_ SHW_GUARDED_BY(mutex_) = 0;
  uint64_t in_use_bytes_ SHW_GUARDED_BY(mutex_) = 0;
  uint64_t most_in_use_bytes_ SHW_GUARDED_BY(mutex_) = 0;
};

}  // namespace internal

Buffer::Buffer(Buffer&& other) noexcept {
  *this = std::move(other);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  store_ = std::move(other.store_);
  memory_ = std::exchange(other.memory_, {});
  bytes_ = std::exchange(other.bytes_, {});
  kind_ = other.kind_;
  unit_ = other.unit_;
  return *this;
}

Buffer::~Buffer() {
  give_back();
}

void Buffer::give_back() noexcept {
  if (store_ != nullptr) store_->give_back(kind_, unit_, bytes_.size(), memory_);
}

Status Buffer::retag(BufferKind kind) {
  if (store_ == nullptr) return failed_precondition("a buffer that is not there has no kind");
  store_->move(kind_, kind, bytes_.size());
  kind_ = kind;
  return {};
}

UnitMemory::UnitMemory(std::shared_ptr<device::LaneDevice> device,
                       std::shared_ptr<device::MemoryWork> work, MemoryPlace place)
    : store_(std::make_shared<internal::MemoryStore>(std::move(device), std::move(work), place)) {}

UnitMemory::~UnitMemory() {
  store_->release_kept(0);
}

Result<Buffer> UnitMemory::acquire(BufferKind kind, uint64_t unit, uint64_t bytes) {
  SHW_ASSIGN_OR_RETURN(const std::span<std::byte> memory, store_->take(kind, unit, bytes));
  Buffer buffer;
  buffer.store_ = store_;
  buffer.memory_ = memory;
  buffer.bytes_ = memory.first(bytes);
  buffer.kind_ = kind;
  buffer.unit_ = unit;
  return buffer;
}

MemoryStats UnitMemory::stats() const {
  return store_->stats();
}

void UnitMemory::reset_peaks() {
  store_->reset_peaks();
}

uint64_t UnitMemory::held_bytes() const {
  return store_->held_bytes();
}

void UnitMemory::trim() {
  store_->release_kept(0);
}

}  // namespace shardwright::hsdp

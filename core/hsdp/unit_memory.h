// SPDX-License-Identifier: Apache-2.0
//
// UnitMemory: the memory of all units of one context, from its device, with books of what each
// buffer is for. Memory that was given back is kept for buffers of about its size, so that its
// pages are there already, as long as no more is held than was ever in use at once; beyond that it
// goes to the device. Buffers may outlive this. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/result.h"
#include "core/device/lane_device.h"
#include "core/device/memory_work.h"
#include "core/hsdp/memory_ledger.h"

namespace shardwright::hsdp {

namespace internal {
class MemoryStore;
}  // namespace internal

// Memory of one kind of one unit; given back when destroyed. Move-only; one thread at a time.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();
  // What was asked for; content undefined at first.
  std::span<std::byte> bytes() const { return bytes_; }
  // Whether it was acquired, be it for 0 bytes.
  explicit operator bool() const { return store_ != nullptr; }
  BufferKind kind() const { return kind_; }
  // The same memory is now for something else. FAILED_PRECONDITION for none.
  Status retag(BufferKind kind);

 private:
  friend class UnitMemory;
  void give_back() noexcept;

  std::shared_ptr<internal::MemoryStore> store_;  // co-owned by all buffers
  std::span<std::byte> memory_;                   // of which bytes_ are the first
  std::span<std::byte> bytes_;
  BufferKind kind_ = BufferKind::kShard;
  uint64_t unit_ = 0;
};

// Which memory of the device: its own, or pinned memory of the host.
enum class MemoryPlace : int32_t { kDevice, kPinned };

class UnitMemory {
 public:
  // work: ends before memory goes back to the device; null where the device has none. Both are
  // co-owned until the last buffer has gone.
  explicit UnitMemory(std::shared_ptr<device::LaneDevice> device,
                      std::shared_ptr<device::MemoryWork> work = nullptr,
                      MemoryPlace place = MemoryPlace::kDevice);
  ~UnitMemory();
  UnitMemory(const UnitMemory&) = delete;
  UnitMemory& operator=(const UnitMemory&) = delete;

  // Aligned to 64 bytes. Failures are those of the device; before one, what is kept is given back
  // to it.
  Result<Buffer> acquire(BufferKind kind, uint64_t unit, uint64_t bytes);
  // Of buffers in use, in the bytes that were asked for.
  MemoryStats stats() const;
  void reset_peaks();
  // Memory from the device: in use, as large as it is there, and kept.
  uint64_t held_bytes() const;
  // Gives what is kept back to the device.
  void trim();

 private:
  std::shared_ptr<internal::MemoryStore> store_;
};

}  // namespace shardwright::hsdp

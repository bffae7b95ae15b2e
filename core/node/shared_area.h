// SPDX-License-Identifier: Apache-2.0
//
// SharedArea: memory that several processes have at once. It has no name in any file system, its
// size is fixed, all its pages are there, and it goes with the last process that has it, however
// that ends. Thread-compatible; what lies in it has rules of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/result.h"

namespace shardwright::node {

// By which another process finds an area while its maker has it.
struct AreaHandle {
  int32_t process = 0;
  int32_t descriptor = 0;
  uint64_t size_bytes = 0;
};

class SharedArea {
 public:
  SharedArea() = default;
  ~SharedArea();
  SharedArea(SharedArea&& other) noexcept;
  SharedArea& operator=(SharedArea&& other) noexcept;

  // Zeros, at least so many. RESOURCE_EXHAUSTED when there is not so much memory, UNIMPLEMENTED
  // where the system has no such areas, PERMISSION_DENIED where it forbids them.
  static Result<SharedArea> create(uint64_t least_bytes);
  // The area of another process, or of this one. PERMISSION_DENIED or NOT_FOUND where it cannot be
  // reached; DATA_LOSS for what is no area of that size whose size is fixed.
  static Result<SharedArea> open(const AreaHandle& handle);

  explicit operator bool() const { return !bytes_.empty(); }
  std::span<std::byte> bytes() const { return bytes_; }
  AreaHandle handle() const;
  // Nobody finds it any more; the memory stays. Saves a descriptor.
  void close_handle() noexcept;

 private:
  SharedArea(int descriptor, std::span<std::byte> bytes) : descriptor_(descriptor), bytes_(bytes) {}
  static Result<SharedArea> map(int descriptor, uint64_t size_bytes);
  void release() noexcept;

  int descriptor_ = -1;
  std::span<std::byte> bytes_;
};

}  // namespace shardwright::node

// SPDX-License-Identifier: Apache-2.0
//
// Where staging memory comes from when a host brings its own.
#pragma once

#include <cstdint>

namespace shardwright {

// Host allocator seam (shw_allocator); both functions or none: null functions = the system
// allocator. allocate gives memory with the asked alignment or null. Both are called from any
// thread, never with a lock of ours held.
struct AllocatorHooks {
  void* (*allocate)(void* user, uint64_t size_bytes, uint64_t alignment) = nullptr;
  void (*release)(void* user, void* pointer, uint64_t size_bytes, uint64_t alignment) = nullptr;
  void* user = nullptr;
};

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
//
// Takes memory away from a thread: operator new fails there. Programs that use it link
// no_memory.cc, which replaces the operators. Any thread, for itself. Not in programs of a
// sanitizer, which brings operators of its own: there a test begins with
// SHW_SKIP_WITHOUT_OWN_OPERATORS.
#pragma once

#include <cstdint>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHW_SANITIZER_BRINGS_OPERATORS
#endif
#endif

#ifdef SHW_SANITIZER_BRINGS_OPERATORS
#define SHW_SKIP_WITHOUT_OWN_OPERATORS() \
  GTEST_SKIP() << "a sanitizer brings its own allocation operators"
#else
#define SHW_SKIP_WITHOUT_OWN_OPERATORS() static_cast<void>(0)
#endif

namespace shardwright::test {

// From now on, for a thread that does not get its memory back before it ends. `allowed` allocations
// still succeed.
void take_memory(int64_t allowed = 0);
// Gives it back; true when an allocation has failed meanwhile.
bool give_memory();

// For a scope.
class NoMemory {
 public:
  explicit NoMemory(int64_t allowed = 0) { take_memory(allowed); }
  ~NoMemory() { give_memory(); }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

}  // namespace shardwright::test

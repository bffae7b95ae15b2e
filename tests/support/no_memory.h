// SPDX-License-Identifier: Apache-2.0
//
// Takes memory away from a thread: operator new fails there. Programs that use it link
// no_memory.cc, which replaces the operators. Any thread, for itself.
#pragma once

#include <cstdint>

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

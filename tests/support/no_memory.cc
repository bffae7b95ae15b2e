// SPDX-License-Identifier: Apache-2.0
#include "tests/support/no_memory.h"

#include <cstdlib>
#include <new>

namespace {

thread_local bool taken = false;
thread_local bool missed = false;
thread_local int64_t left = 0;

void* allocate(size_t size) {
  if (taken && left-- <= 0) {
    missed = true;
    throw std::bad_alloc();
  }
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

namespace shardwright::test {

void take_memory(int64_t allowed) {
  taken = true;
  missed = false;
  left = allowed;
}

bool give_memory() {
  taken = false;
  return missed;
}

}  // namespace shardwright::test

void* operator new(size_t size) {
  return allocate(size);
}
void* operator new[](size_t size) {
  return allocate(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  std::free(memory);
}

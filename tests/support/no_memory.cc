// SPDX-License-Identifier: Apache-2.0
#include "tests/support/no_memory.h"

#include <cstdlib>
#include <new>

namespace {

thread_local bool taken = false;
thread_local bool missed = false;
thread_local int64_t left = 0;

[[maybe_unused]] void* allocate_or_null(size_t size, size_t alignment = 0) noexcept {
  if (taken && left-- <= 0) {
    missed = true;
    return nullptr;
  }
  if (alignment == 0) return std::malloc(size == 0 ? 1 : size);
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, size) == 0 ? memory : nullptr;
}

[[maybe_unused]] void* allocate(size_t size, size_t alignment = 0) {
  void* memory = allocate_or_null(size, alignment);
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

#ifndef SHW_SANITIZER_BRINGS_OPERATORS

void* operator new(size_t size) {
  return allocate(size);
}
void* operator new[](size_t size) {
  return allocate(size);
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return allocate_or_null(size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return allocate_or_null(size);
}
void* operator new(size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null(size, static_cast<size_t>(alignment));
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
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}

#endif

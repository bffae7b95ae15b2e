// SPDX-License-Identifier: Apache-2.0
//
// mmap, and madvise on the whole pages of a range.
#include "core/base/huge_pages.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "core/base/checked.h"

namespace shardwright {
namespace {

constexpr size_t kLeastBytes = size_t{8} << 20;  // below, a fault more or less does not show
constexpr uintptr_t kPageBytes = 4096;
constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

#if !defined(MADV_POPULATE_WRITE)
constexpr int MADV_POPULATE_WRITE = 23;
#endif

void* map_anonymous(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

void advise_huge_pages(void* data, size_t bytes) {
  if (bytes < kLeastBytes) return;
  const auto begin = (reinterpret_cast<uintptr_t>(data) + kPageBytes - 1) & ~(kPageBytes - 1);
  const auto end = (reinterpret_cast<uintptr_t>(data) + bytes) & ~(kPageBytes - 1);
  // A refusal means small pages: nothing that a caller could do about it.
  static_cast<void>(madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));
}

void* map_memory(uint64_t bytes) {
  if (bytes < kHugePageBytes) return map_anonymous(bytes);
  uint64_t with_slack = 0;
  if (!checked_add(bytes, kHugePageBytes, &with_slack)) return nullptr;
  auto* const mapped = static_cast<std::byte*>(map_anonymous(with_slack));
  if (mapped == nullptr) return nullptr;
  const uint64_t misaligned = reinterpret_cast<uintptr_t>(mapped) % kHugePageBytes;
  const uint64_t before = misaligned == 0 ? 0 : kHugePageBytes - misaligned;
  // Cutting off the slack cannot fail for ranges that were just mapped; if it did, only address
  // space stays.
  const uint64_t rounded = (bytes + kPageBytes - 1) & ~uint64_t{kPageBytes - 1};
  if (before > 0) munmap(mapped, before);
  if (before + rounded < with_slack)
    munmap(mapped + before + rounded, with_slack - before - rounded);
  madvise(mapped + before, bytes, MADV_HUGEPAGE);  // advice: the memory works without
  return mapped + before;
}

void* map_small_pages(uint64_t bytes) {
  return map_anonymous(bytes);
}

void unmap_memory(void* memory, uint64_t bytes) {
  munmap(memory, bytes);
}

bool populate_pages(void* data, uint64_t bytes) {
  if (bytes == 0) return true;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data) & ~(kPageBytes - 1);
  const uintptr_t end =
      (reinterpret_cast<uintptr_t>(data) + bytes + kPageBytes - 1) & ~(kPageBytes - 1);
  return madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE) == 0;
}

bool make_pages(void* data, uint64_t bytes) {
  if (populate_pages(data, bytes)) return true;
  if (errno == ENOMEM || errno == EFAULT) return false;
  volatile auto* const memory = static_cast<std::byte*>(data);
  for (uint64_t at = 0; at < bytes; at += kPageBytes) memory[at] = std::byte{0};
  return true;
}

}  // namespace shardwright

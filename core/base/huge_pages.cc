// SPDX-License-Identifier: Apache-2.0
//
// madvise on the whole pages of a range.
#include "core/base/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace shardwright {
namespace {

constexpr size_t kLeastBytes = size_t{8} << 20;  // below, a fault more or less does not show
constexpr uintptr_t kPageBytes = 4096;

}  // namespace

void advise_huge_pages(void* data, size_t bytes) {
  if (bytes < kLeastBytes) return;
  const auto begin = (reinterpret_cast<uintptr_t>(data) + kPageBytes - 1) & ~(kPageBytes - 1);
  const auto end = (reinterpret_cast<uintptr_t>(data) + bytes) & ~(kPageBytes - 1);
  // A refusal means small pages: nothing that a caller could do about it.
  static_cast<void>(madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "core/concurrency/kept_memory.h"

#include <cstring>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::shared_ptr<std::byte> acquired(KeptMemory& memory, uint64_t size_bytes) {
  Result<std::shared_ptr<std::byte>> block = memory.acquire(size_bytes);
  EXPECT_TRUE(block.ok()) << block.status().to_string();
  if (!block.ok()) return nullptr;
  if (size_bytes > 0) std::memset(block->get(), 0x5A, size_bytes);  // all of it can be written
  return *block;
}

TEST(KeptMemory, TheNextUserGetsTheBlockOfTheLast) {
  KeptMemory memory;
  auto first = acquired(memory, 3 * kMiB);
  const std::byte* const where = first.get();
  EXPECT_EQ(memory.kept_bytes(), 0U);
  first.reset();
  EXPECT_EQ(memory.kept_bytes(), 3 * kMiB);
  const auto smaller = acquired(memory, kMiB);
  EXPECT_EQ(smaller.get(), where);
  EXPECT_EQ(memory.kept_bytes(), 0U);
}

TEST(KeptMemory, BlocksInUseAreNotShared) {
  KeptMemory memory;
  const auto first = acquired(memory, kMiB);
  const auto second = acquired(memory, kMiB);
  EXPECT_NE(first.get(), second.get());
}

TEST(KeptMemory, ALargerUserDoesNotHoldTwo) {
  KeptMemory memory;
  acquired(memory, kMiB).reset();
  const auto larger = acquired(memory, 8 * kMiB);
  EXPECT_EQ(memory.kept_bytes(), 0U);
}

TEST(KeptMemory, OfTwoUnusedBlocksTheLargerIsKept) {
  KeptMemory memory;
  auto small = acquired(memory, kMiB);
  auto large = acquired(memory, 4 * kMiB);
  large.reset();
  small.reset();
  EXPECT_EQ(memory.kept_bytes(), 4 * kMiB);
}

TEST(KeptMemory, ABlockOutlivesWhereItCameFrom) {
  std::shared_ptr<std::byte> block;
  {
    KeptMemory memory;
    block = acquired(memory, kMiB);
  }
  std::memset(block.get(), 1, kMiB);
}

TEST(KeptMemory, NothingIsNothingAndTooMuchIsRefused) {
  KeptMemory memory;
  EXPECT_EQ(acquired(memory, 0), nullptr);
  const Status refused = memory.acquire(uint64_t{1} << 62).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.detail("resource"), "memory");
}

}  // namespace
}  // namespace shardwright

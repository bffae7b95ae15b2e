// SPDX-License-Identifier: Apache-2.0
#include "core/concurrency/kept_memory.h"

#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::shared_ptr<std::byte> acquired(KeptMemory& memory, uint64_t size_bytes) {
  Result<KeptMemory::Block> block = memory.acquire(size_bytes);
  EXPECT_TRUE(block.ok()) << block.status().to_string();
  if (!block.ok()) return nullptr;
  if (size_bytes > 0) std::memset(block->memory.get(), 0x5A, size_bytes);  // all can be written
  return block->memory;
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

// Takes a block and gives it back; whether its pages were there.
bool was_resident(KeptMemory& memory, uint64_t size_bytes) {
  const Result<KeptMemory::Block> block = memory.acquire(size_bytes);
  EXPECT_TRUE(block.ok()) << block.status().to_string();
  return block.ok() && block->is_resident;
}

TEST(KeptMemory, PagesStay) {
  KeptMemory memory;
  EXPECT_FALSE(was_resident(memory, kMiB)) << "it is new";
  EXPECT_TRUE(was_resident(memory, kMiB));
  EXPECT_TRUE(was_resident(memory, kMiB / 2));
  EXPECT_FALSE(was_resident(memory, 2 * kMiB)) << "a larger one is new";
}

// A host's allocator that counts what is out and refuses when told to.
struct HostAllocator {
  int64_t blocks = 0;
  uint64_t asked_alignment = 0;
  bool refuses = false;

  AllocatorHooks hooks() {
    return {[](void* user, uint64_t size_bytes, uint64_t alignment) -> void* {
              auto* const self = static_cast<HostAllocator*>(user);
              self->asked_alignment = alignment;
              if (self->refuses) return nullptr;
              ++self->blocks;
              return std::aligned_alloc(alignment, size_bytes);
            },
            [](void* user, void* pointer, uint64_t, uint64_t) {
              --static_cast<HostAllocator*>(user)->blocks;
              std::free(pointer);
            },
            this};
  }
};

TEST(KeptMemory, MemoryOfTheHostsAllocatorGoesBackToIt) {
  HostAllocator host;
  {
    KeptMemory memory(host.hooks());
    acquired(memory, kMiB).reset();
    EXPECT_EQ(host.blocks, 1) << "kept";
    EXPECT_EQ(host.asked_alignment, 4096U);
    EXPECT_TRUE(was_resident(memory, kMiB)) << "nothing of it may be taken";
    acquired(memory, 2 * kMiB).reset();
    EXPECT_EQ(host.blocks, 1);
  }
  EXPECT_EQ(host.blocks, 0);
}

TEST(KeptMemory, AnAllocatorThatRefusesIsNamed) {
  HostAllocator host;
  KeptMemory memory(host.hooks());
  host.refuses = true;
  const Status refused = memory.acquire(kMiB).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(), "the host's allocator refused 1048576 bytes of staging memory");
  host.refuses = false;
  EXPECT_NE(acquired(memory, kMiB), nullptr);
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

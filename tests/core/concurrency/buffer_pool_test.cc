// SPDX-License-Identifier: Apache-2.0
//
// BufferPool: reuse, the budget, back-pressure, host allocators.
#include "core/concurrency/buffer_pool.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/concurrency/thread_pool.h"
#include "tests/support/fake_clock.h"
#include "tests/support/gate.h"
#include "tests/support/random_source.h"

namespace shardwright {
namespace {

constexpr uint64_t kPage = 4096;

StagingBuffer acquire_or_fail(BufferPool& pool, uint64_t size_bytes) {
  Result<StagingBuffer> buffer = pool.acquire(size_bytes, {});
  EXPECT_TRUE(buffer.ok()) << buffer.status().to_string();
  return buffer.ok() ? std::move(buffer).value() : StagingBuffer();
}

// Allocator of a host that counts and can refuse.
struct HostMemory {
  std::mutex mutex;
  std::map<void*, uint64_t> live;
  int allocations = 0;
  bool refuse = false;
  bool misalign = false;

  AllocatorHooks hooks() { return {&allocate, &release, this}; }
  static void* allocate(void* user, uint64_t size_bytes, uint64_t alignment) {
    auto* self = static_cast<HostMemory*>(user);
    const std::lock_guard<std::mutex> lock(self->mutex);
    if (self->refuse) return nullptr;
    ++self->allocations;
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment, size_bytes + alignment));
    if (self->misalign) memory += 8;
    self->live[memory] = size_bytes;
    return memory;
  }
  static void release(void* user, void* pointer, uint64_t size_bytes, uint64_t /*alignment*/) {
    auto* self = static_cast<HostMemory*>(user);
    const std::lock_guard<std::mutex> lock(self->mutex);
    EXPECT_EQ(self->live.at(pointer), size_bytes);
    self->live.erase(pointer);
    std::free(static_cast<std::byte*>(pointer) - (self->misalign ? 8 : 0));
  }
};

TEST(BufferPool, GivesAlignedMemoryOfTheAskedSize) {
  BufferPool pool(64 << 20, {});
  for (const uint64_t size_bytes : {uint64_t{1}, kPage - 1, kPage, kPage + 1, uint64_t{5} << 20}) {
    const StagingBuffer buffer = acquire_or_fail(pool, size_bytes);
    ASSERT_EQ(buffer.bytes().size(), size_bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.bytes().data()) % kPage, 0U);
    std::memset(buffer.bytes().data(), 0xAB, size_bytes);
  }
}

TEST(BufferPool, EmptyRequestGivesAnEmptyBuffer) {
  BufferPool pool(kPage, {});
  const StagingBuffer buffer = acquire_or_fail(pool, 0);
  EXPECT_FALSE(buffer);
  EXPECT_EQ(pool.held_bytes(), 0U);
}

TEST(BufferPool, ReusesBuffersOfOneRoundedSize) {
  BufferPool pool(16 * kPage, {});
  const void* first = acquire_or_fail(pool, 3 * kPage).bytes().data();
  const StagingBuffer again = acquire_or_fail(pool, 3 * kPage - 5);
  EXPECT_EQ(again.bytes().data(), first);
  EXPECT_EQ(pool.held_bytes(), 3 * kPage);
}

TEST(BufferPool, CountsHeldAndPeakBytesAndTrims) {
  BufferPool pool(16 * kPage, {});
  EXPECT_EQ(pool.budget_bytes(), 16 * kPage);
  {
    const StagingBuffer a = acquire_or_fail(pool, kPage);
    const StagingBuffer b = acquire_or_fail(pool, 2 * kPage + 1);
    EXPECT_EQ(pool.held_bytes(), 4 * kPage);
    pool.trim();
    EXPECT_EQ(pool.held_bytes(), 4 * kPage);  // both are in use
  }
  EXPECT_EQ(pool.held_bytes(), 4 * kPage);
  pool.trim();
  EXPECT_EQ(pool.held_bytes(), 0U);
  EXPECT_EQ(pool.peak_bytes(), 4 * kPage);
}

TEST(BufferPool, RefusesMoreThanTheWholeBudget) {
  BufferPool pool(4 * kPage, {});
  const Status status = pool.acquire(4 * kPage + 1, {}).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.detail("resource"), "memory");
  EXPECT_NE(status.message().find("16385"), std::string_view::npos) << status.to_string();
  EXPECT_NE(status.message().find("16384"), std::string_view::npos) << status.to_string();
  EXPECT_EQ(pool.acquire(UINT64_MAX, {}).status().code(), StatusCode::kResourceExhausted);
}

TEST(BufferPool, FreesUnusedBuffersOfOtherSizesFirst) {
  HostMemory host;
  {
    BufferPool pool(8 * kPage, host.hooks());
    for (int i = 0; i < 2; ++i) {
      const StagingBuffer a = acquire_or_fail(pool, kPage);
      const StagingBuffer b = acquire_or_fail(pool, 3 * kPage);
      const StagingBuffer c = acquire_or_fail(pool, 4 * kPage);
    }
    EXPECT_EQ(host.allocations, 3);
    const StagingBuffer large = acquire_or_fail(pool, 6 * kPage);
    EXPECT_LE(pool.held_bytes(), 8 * kPage);
    EXPECT_EQ(host.allocations, 4);
  }
  EXPECT_TRUE(host.live.empty());
}

TEST(BufferPool, MovedBuffersGoBackOnce) {
  HostMemory host;
  BufferPool pool(8 * kPage, host.hooks());
  StagingBuffer a = acquire_or_fail(pool, kPage);
  StagingBuffer b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): a moved buffer is empty
  StagingBuffer c = acquire_or_fail(pool, kPage);
  c = std::move(b);
  EXPECT_EQ(acquire_or_fail(pool, kPage).bytes().size(), kPage);  // the old c is free again
  EXPECT_EQ(host.allocations, 2);
  c = StagingBuffer();
  pool.trim();
  EXPECT_TRUE(host.live.empty());
}

TEST(BufferPool, WaitsUntilAnotherThreadGivesBack) {
  BufferPool pool(2 * kPage, {});
  StagingBuffer held = acquire_or_fail(pool, 2 * kPage);
  test::Gate started;
  std::atomic<bool> released{false};
  std::thread waiter([&] {
    started.open();
    const StagingBuffer mine = acquire_or_fail(pool, kPage);
    EXPECT_TRUE(released.load());
    EXPECT_TRUE(mine);
  });
  started.pass();
  released = true;
  held = StagingBuffer();
  waiter.join();
  EXPECT_LE(pool.peak_bytes(), 2 * kPage);
}

TEST(BufferPool, WaitingEndsWithCancellation) {
  BufferPool pool(kPage, {});
  const StagingBuffer held = acquire_or_fail(pool, kPage);
  CancellationFlag flag;
  CallControl control;
  control.cancellation = &flag;
  test::Gate started;
  std::thread waiter([&] {
    started.open();
    EXPECT_EQ(pool.acquire(kPage, control).status().code(), StatusCode::kCancelled);
  });
  started.pass();
  flag.cancel();
  waiter.join();
}

TEST(BufferPool, WaitingEndsWithTheDeadline) {
  BufferPool pool(kPage, {});
  const StagingBuffer held = acquire_or_fail(pool, kPage);
  test::FakeClock clock(0);
  CallControl control;
  control.clock = &clock;
  control.deadline_ns = 1000;
  test::Gate started;
  std::thread waiter([&] {
    started.open();
    EXPECT_EQ(pool.acquire(kPage, control).status().code(), StatusCode::kDeadlineExceeded);
  });
  started.pass();
  clock.advance_ns(1000);
  waiter.join();
}

TEST(BufferPool, RefusalOfTheHostAllocatorLeavesTheBudgetWhole) {
  HostMemory host;
  BufferPool pool(kPage, host.hooks());
  host.refuse = true;
  const Status status = pool.acquire(kPage, {}).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.detail("resource"), "memory");
  EXPECT_EQ(pool.held_bytes(), 0U);
  host.refuse = false;
  EXPECT_TRUE(acquire_or_fail(pool, kPage));
}

TEST(BufferPool, RefusesMisalignedMemoryAndGivesItBack) {
  HostMemory host;
  host.misalign = true;
  BufferPool pool(kPage, host.hooks());
  EXPECT_EQ(pool.acquire(kPage, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(host.live.empty());
  EXPECT_EQ(pool.held_bytes(), 0U);
}

TEST(BufferPool, RefusalOfTheSystemLeavesTheBudgetWhole) {
  BufferPool pool(UINT64_MAX & ~(kPage - 1), {});
  EXPECT_EQ(pool.acquire(uint64_t{1} << 60, {}).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(pool.held_bytes(), 0U);
}

TEST(BufferPool, ManyThreadsNeverPassTheBudgetNorShareMemory) {
  constexpr uint64_t kBudget = 6 * kPage;
  HostMemory host;
  {
    BufferPool pool(kBudget, host.hooks());
    std::atomic<uint64_t> in_use{0};
    Status status;
    const auto workers = ThreadPool::create(4, &status);
    TaskGroup group(workers.get());
    for (int task = 0; task < 8; ++task) {
      group.run([&, task]() -> Status {
        std::mt19937 engine(static_cast<unsigned>(task));
        for (int round = 0; round < 200; ++round) {
          const uint64_t size_bytes = (1 + engine() % 6) * kPage;
          SHW_ASSIGN_OR_RETURN(const StagingBuffer buffer, pool.acquire(size_bytes, {}));
          if ((in_use += size_bytes) > kBudget) return internal_error("over the budget");
          const auto mark = static_cast<std::byte>(engine() & 0xFF);
          std::memset(buffer.bytes().data(), std::to_integer<int>(mark), size_bytes);
          for (const std::byte each : {buffer.bytes().front(), buffer.bytes().back()}) {
            if (each != mark) return internal_error("memory is shared");
          }
          in_use -= size_bytes;
        }
        return {};
      });
    }
    const Status outcome = group.wait();
    EXPECT_TRUE(outcome.ok()) << outcome.to_string();
    EXPECT_LE(pool.peak_bytes(), kBudget);
  }
  EXPECT_TRUE(host.live.empty());
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
//
// ThreadPool and TaskGroup. Gates order the threads.
#include "core/concurrency/thread_pool.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/limits.h"
#include "tests/support/gate.h"
#include "tests/support/no_memory.h"

namespace shardwright {
namespace {

using test::Gate;

std::unique_ptr<ThreadPool> make_pool(int32_t threads) {
  Status status;
  std::unique_ptr<ThreadPool> pool = ThreadPool::create(threads, &status);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return pool;
}

TEST(ThreadPool, RefusesFewerThanOneThread) {
  for (const int32_t threads : {0, -1}) {
    Status status;
    EXPECT_EQ(ThreadPool::create(threads, &status), nullptr);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  }
}

TEST(ThreadPool, RunsTasksOfOneWorkerInSubmissionOrder) {
  std::vector<int> order;
  {
    const auto pool = make_pool(1);
    for (int i = 0; i < 100; ++i) pool->submit([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(ThreadPool, DestructionRunsWhatWasSubmitted) {
  std::atomic<int> runs{0};
  Gate gate;
  {
    const auto pool = make_pool(2);
    pool->submit([&] { gate.pass(); });
    pool->submit([&] { gate.pass(); });
    for (int i = 0; i < 50; ++i) pool->submit([&] { ++runs; });
    EXPECT_EQ(runs.load(), 0);  // both workers stand at the gate
    gate.open();
  }
  EXPECT_EQ(runs.load(), 50);
}

TEST(ThreadPool, RunsTasksAtTheSameTime) {
  const auto pool = make_pool(2);
  Gate first;
  Gate second;
  TaskGroup group(pool.get());
  group.run([&]() -> Status {
    first.open();
    second.pass();
    return {};
  });
  group.run([&]() -> Status {
    second.open();
    first.pass();
    return {};
  });
  EXPECT_TRUE(group.wait().ok());
}

TEST(ThreadPool, WorkersBlockSignalsAndCallersDoNot) {
  const auto pool = make_pool(1);
  EXPECT_EQ(pool->thread_count(), 1);
  TaskGroup group(pool.get());
  bool blocked = false;
  bool fault_open = false;
  group.run([&]() -> Status {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked = sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGTERM) == 1;
    fault_open = sigismember(&mask, SIGSEGV) == 0;
    return {};
  });
  EXPECT_TRUE(group.wait().ok());
  EXPECT_TRUE(blocked);
  EXPECT_TRUE(fault_open);
  sigset_t mine;
  pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGINT), 0);
}

TEST(ThreadPool, KnowsItsWorkers) {
  const auto pool = make_pool(1);
  const auto other = make_pool(1);
  TaskGroup group(pool.get());
  group.run([&]() -> Status {
    return pool->is_current_worker() && !other->is_current_worker() ? Status()
                                                                    : internal_error("wrong pool");
  });
  EXPECT_TRUE(group.wait().ok());
  EXPECT_FALSE(pool->is_current_worker());
}

TEST(ThreadPool, DefaultCountIsInRange) {
  EXPECT_GE(default_thread_count(), 1);
  EXPECT_LE(default_thread_count(), kMaxDefaultThreads);
}

TEST(TaskGroup, WithoutPoolRunsInline) {
  TaskGroup group(nullptr);
  int runs = 0;
  group.run([&]() -> Status {
    ++runs;
    return {};
  });
  EXPECT_EQ(runs, 1);
  group.run([&]() -> Status {
    ++runs;
    return not_found("x");
  });
  group.run([&]() -> Status {
    ++runs;
    return {};
  });  // skipped after the failure
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(group.failed());
  EXPECT_EQ(group.wait().code(), StatusCode::kNotFound);
}

TEST(TaskGroup, WaitOfAnEmptyGroupIsSuccess) {
  const auto pool = make_pool(1);
  TaskGroup group(pool.get());
  EXPECT_TRUE(group.wait().ok());
  EXPECT_FALSE(group.failed());
}

TEST(TaskGroup, KeepsTheFirstFailureAndSkipsWhatHasNotStarted) {
  const auto pool = make_pool(1);
  TaskGroup group(pool.get());
  Gate gate;
  std::atomic<int> later{0};
  group.run([&]() -> Status {
    gate.pass();
    return data_loss("first");
  });
  group.run([&]() -> Status {
    ++later;
    return not_found("second");
  });
  gate.open();
  EXPECT_EQ(group.wait().message(), "first");
  EXPECT_EQ(later.load(), 0);
  EXPECT_TRUE(group.failed());
}

TEST(TaskGroup, MayRunAndWaitAgain) {
  const auto pool = make_pool(2);
  TaskGroup group(pool.get());
  std::atomic<int> runs{0};
  for (int round = 1; round <= 3; ++round) {
    for (int i = 0; i < 10; ++i)
      group.run([&]() -> Status {
        ++runs;
        return {};
      });
    EXPECT_TRUE(group.wait().ok());
    EXPECT_EQ(runs.load(), round * 10);
  }
}

// The worker has no memory any more when the failure of its task is noted.
TEST(TaskGroup, ATaskThatUsesUpAllMemoryIsCountedAsDone) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  const auto pool = make_pool(1);
  TaskGroup group(pool.get());
  group.run([]() -> Status {
    test::take_memory();
    throw std::bad_alloc();
  });
  EXPECT_EQ(group.wait().code(), StatusCode::kResourceExhausted);
}

TEST(ThreadPool, IsNotMadeWithoutMemory) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  bool missed = true;
  for (int64_t allowed = 0; missed; ++allowed) {
    Status status;
    std::unique_ptr<ThreadPool> pool;
    try {
      const test::NoMemory none(allowed);
      pool = ThreadPool::create(3, &status);
    } catch (const std::bad_alloc&) {  // its threads, if any, have ended
    }
    missed = pool == nullptr;
  }
}

TEST(TaskGroup, TurnsExceptionsIntoStatuses) {
  const auto pool = make_pool(1);
  TaskGroup memory(pool.get());
  memory.run([]() -> Status { throw std::bad_alloc(); });
  EXPECT_EQ(memory.wait().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(memory.wait().detail("resource"), "memory");
  TaskGroup standard(pool.get());
  standard.run([]() -> Status { throw std::runtime_error("boom"); });
  EXPECT_EQ(standard.wait().code(), StatusCode::kInternal);
  EXPECT_NE(standard.wait().message().find("boom"), std::string_view::npos);
  TaskGroup other(pool.get());
  other.run([]() -> Status { throw 7; });
  EXPECT_EQ(other.wait().code(), StatusCode::kInternal);
}

TEST(TaskGroup, DestructorWaits) {
  const auto pool = make_pool(2);
  std::atomic<int> runs{0};
  {
    TaskGroup group(pool.get());
    for (int i = 0; i < 100; ++i)
      group.run([&]() -> Status {
        ++runs;
        return {};
      });
  }
  EXPECT_EQ(runs.load(), 100);
}

TEST(TaskGroup, WaitReturnsAfterTheTasksAreDestroyed) {
  const auto pool = make_pool(2);
  const auto captured = std::make_shared<int>(1);
  TaskGroup group(pool.get());
  for (int i = 0; i < 50; ++i) group.run([captured]() -> Status { return {}; });
  EXPECT_TRUE(group.wait().ok());
  EXPECT_EQ(captured.use_count(), 1);
}

// Sums 1 by splitting the work in two on the same pool, depth levels deep.
Status count_leaves(ThreadPool* pool, int depth, std::atomic<int>* leaves) {
  if (depth == 0) {
    ++*leaves;
    return {};
  }
  TaskGroup group(pool);
  for (int i = 0; i < 2; ++i) group.run([=] { return count_leaves(pool, depth - 1, leaves); });
  return group.wait();
}

// Niceness and place at the disk of the calling thread.
std::pair<int, int> place_of_thread() {
  const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
  return {::getpriority(PRIO_PROCESS, thread), static_cast<int>(::syscall(SYS_ioprio_get, 1, 0))};
}

TEST(ThreadPool, WorkersInTheBackgroundGoBehindOthers) {
  constexpr int kLastOfBestEffort = (2 << 13) | 7;
  const auto mine = place_of_thread();
  for (const auto priority : {ThreadPriority::kNormal, ThreadPriority::kBackground}) {
    Status status;
    const auto pool = ThreadPool::create(2, &status, priority);
    ASSERT_TRUE(status.ok());
    std::pair<int, int> theirs;
    TaskGroup group(pool.get());
    group.run([&]() -> Status {
      theirs = place_of_thread();
      return {};
    });
    ASSERT_TRUE(group.wait().ok());
    const auto behind = std::pair(std::max(mine.first, 10), kLastOfBestEffort);
    EXPECT_EQ(theirs, priority == ThreadPriority::kNormal ? mine : behind);
  }
  EXPECT_EQ(place_of_thread(), mine);
}

TEST(TaskGroup, NestsOnOnePoolWithoutDeadlock) {
  for (const int32_t threads : {1, 3}) {
    const auto pool = make_pool(threads);
    std::atomic<int> leaves{0};
    EXPECT_TRUE(count_leaves(pool.get(), 6, &leaves).ok());
    EXPECT_EQ(leaves.load(), 64);
  }
}

}  // namespace
}  // namespace shardwright

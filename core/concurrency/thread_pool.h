// SPDX-License-Identifier: Apache-2.0
//
// ThreadPool: a fixed number of workers that run tasks in submission order. Workers block all
// signals; they exist from construction to destruction, which runs what was submitted and joins.
// TaskGroup waits for a set of tasks and keeps the first failure. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/status.h"

namespace shardwright {

// Background: others go before it on cores and, where its scheduler looks at that, on the disk; on
// cores that they keep busy it gets about a tenth.
enum class ThreadPriority : int32_t { kNormal = 0, kBackground = 1 };

class ThreadPool {
 public:
  // thread_count >= 1. RESOURCE_EXHAUSTED is reported by create when the system refuses a thread; a
  // priority that it refuses is none.
  static std::unique_ptr<ThreadPool> create(int32_t thread_count, Status* status,
                                            ThreadPriority priority = ThreadPriority::kNormal);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int32_t thread_count() const;
  // Queues a task; it must not throw. Never blocks.
  void submit(std::function<void()> task);
  // True on a worker of this pool.
  bool is_current_worker() const;
  // Of the calling thread; normal on one that is no worker of a pool.
  static ThreadPriority current_priority();

 private:
  struct Shared;
  explicit ThreadPool(std::unique_ptr<Shared> shared);
  std::unique_ptr<Shared> shared_;
};

// Default worker count: min(cores available to the process, kMaxDefaultThreads).
int32_t default_thread_count();

// Runs tasks on a pool (inline when pool is null) and joins them. A task that throws counts as
// INTERNAL (std::bad_alloc: RESOURCE_EXHAUSTED). After the first failure tasks not yet started are
// skipped. The destructor waits.
class TaskGroup {
 public:
  explicit TaskGroup(ThreadPool* pool);
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  void run(std::function<Status()> task);
  bool failed() const;
  // Waits for all tasks; the first failure in time, or success. May be called again after more
  // run(). On a worker of the same pool it runs waiting tasks of this group itself, so groups may
  // nest.
  Status wait();

 private:
  struct State;
  std::shared_ptr<State> state_;  // co-owned by running tasks
};

}  // namespace shardwright

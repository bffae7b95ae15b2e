// SPDX-License-Identifier: Apache-2.0
//
// Shared loops: a fixed number of workers, the caller among them, take the numbers of pieces of
// work one after another. Memory that a worker needs is so bounded by the number of workers, never
// by the number of pieces.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

#include "core/base/result.h"
#include "core/concurrency/cancellation.h"
#include "core/concurrency/thread_pool.h"

namespace shardwright::exec::internal {

// One worker's part: takes numbers from next() until it gives none, then returns. The first failure
// stops all.
class WorkQueue {
 public:
  explicit WorkQueue(size_t count) : count_(count) {}
  // False when nothing is left or a worker has failed.
  bool next(size_t* number) {
    if (stopped_.load(std::memory_order_relaxed)) return false;
    *number = next_.fetch_add(1, std::memory_order_relaxed);
    return *number < count_;
  }
  void stop() { stopped_.store(true, std::memory_order_relaxed); }

 private:
  const size_t count_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> stopped_{false};
};

// Runs worker(queue) on workers threads, the caller being one of them (at least), and joins. The
// first failure in time. Workers that the pool has no room for come when there is room.
Status run_workers(ThreadPool& pool, size_t workers, WorkQueue* queue,
                   const std::function<Status(WorkQueue*)>& worker);

// work(number) for every number below count, checking control between pieces.
Status run_each(ThreadPool& pool, size_t count, const CallControl& control,
                const std::function<Status(size_t)>& work);

}  // namespace shardwright::exec::internal

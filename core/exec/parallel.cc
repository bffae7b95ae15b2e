// SPDX-License-Identifier: Apache-2.0
//
// Shared loops over a task group.
#include <algorithm>
#include <new>

#include "core/base/without_exceptions.h"
#include "core/exec/parallel_internal.h"

namespace shardwright::exec::internal {

namespace {

// False when there is no memory to queue the task: then fewer workers do the same work.
bool try_run(TaskGroup* group, const std::function<Status()>& task) {
  try {
    group->run(task);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

Status run_workers(ThreadPool& pool, size_t workers, WorkQueue* queue,
                   const std::function<Status(WorkQueue*)>& worker) {
  const auto stopping = [queue, &worker] {
    Status status = without_exceptions("a worker", [&] { return worker(queue); });
    if (!status.ok()) queue->stop();
    return status;
  };
  TaskGroup group(&pool);
  for (size_t i = 1; i < workers; ++i) {
    if (!try_run(&group, stopping)) break;
  }
  Status mine = stopping();
  Status theirs = group.wait();
  return mine.ok() ? theirs : mine;
}

Status run_each(ThreadPool& pool, size_t count, const CallControl& control,
                const std::function<Status(size_t)>& work) {
  WorkQueue queue(count);
  const auto workers = std::min(count, static_cast<size_t>(pool.thread_count()) + 1);
  return run_workers(pool, workers, &queue, [&control, &work](WorkQueue* shared) {
    for (size_t number = 0; shared->next(&number);) {
      SHW_RETURN_IF_ERROR(control.check("working through the pieces of a call"));
      SHW_RETURN_IF_ERROR(work(number));
    }
    return Status();
  });
}

}  // namespace shardwright::exec::internal

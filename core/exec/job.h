// SPDX-License-Identifier: Apache-2.0
//
// Job: one save or load that runs on the runtime's background thread. States are those of the C
// surface; terminal ones are reached exactly once. Dropping a job neither waits nor cancels.
// Thread-safe.
#pragma once

#include <functional>
#include <memory>

#include "core/exec/progress.h"
#include "core/exec/report.h"
#include "core/exec/save.h"

namespace shardwright::exec {

enum class JobState : int32_t {
  kQueued = 0,
  kRunning = 1,
  kStaged = 2,
  kSucceeded = 3,
  kFailed = 4,
  kCancelled = 5
};

class Job {
 public:
  virtual ~Job() = default;
  virtual JobState state() const = 0;
  // True when terminal (wait) or staged or later (wait_staged) before the time is over; 0 = do not
  // wait, negative = no limit.
  virtual bool wait(int64_t timeout_ns) = 0;
  virtual bool wait_staged(int64_t timeout_ns) = 0;
  virtual void cancel() = 0;
  // Has `done` run once, on the background thread, when the job has ended and uses nothing of its
  // host any more; it must call nothing of the library and throw nothing. FAILED_PRECONDITION, and
  // `done` will not run, when the job has ended already or has one.
  virtual Status on_done(std::function<void()> done) = 0;
  virtual ProgressSnapshot progress() const = 0;
  virtual Status status() const = 0;                         // of a terminal job
  virtual std::shared_ptr<const Report> report() const = 0;  // null unless succeeded
};

// Runs jobs in submission order on one background thread. Destruction waits for what was submitted.
class JobQueue {
 public:
  static Result<std::unique_ptr<JobQueue>> create(Runtime& runtime);
  virtual ~JobQueue() = default;
  // Runs also when the job was cancelled while it waited, so that it can tell other ranks; it asks
  // call.control first.
  using Work = std::function<Result<Report>(const CallContext&)>;
  // Ranks of one process that meet in this job; jobs run one after another, so two of them in one
  // queue would wait for each other.
  struct GroupRank {
    const void* group =
        nullptr;  // equal for the members of one group of this process; null = no other is here
    int32_t rank = 0;
  };
  // keepalive is dropped on the thread that drops the last reference of the job after it is
  // terminal, never on the background thread (host deleters need host threads).
  // Null after a shutdown.
  virtual std::shared_ptr<Job> submit(Work work, std::shared_ptr<void> keepalive,
                                      const GroupRank& group_rank) = 0;
  std::shared_ptr<Job> submit(Work work, std::shared_ptr<void> keepalive) {
    return submit(std::move(work), std::move(keepalive), GroupRank());
  }
  // The rank of an unfinished job that would have to run together with this one, or -1.
  virtual int32_t rank_in_the_way(const GroupRank& group_rank) const = 0;
  virtual int32_t unfinished() const = 0;
  // Waits for all jobs; when half of timeout_ns passed cancels what is left and waits for the rest
  // of it. False when some job is still not terminal, or its on_done runs. Negative = no limit.
  // Afterwards the queue takes no new jobs.
  virtual bool shutdown(int64_t timeout_ns) = 0;
};

}  // namespace shardwright::exec

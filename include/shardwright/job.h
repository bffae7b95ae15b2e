/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs: saves and loads that run in the background. The memory that a job was given stays in use
 * until the job is staged (save) or terminal (load). Each terminal state is reached exactly once;
 * shw_job_on_done tells of it, also a host that has released the handle.
 * Calls that wait instead are ended from another thread by a cancellation. */
#ifndef SHARDWRIGHT_JOB_H
#define SHARDWRIGHT_JOB_H

#include "base.h"
#include "collective.h"
#include "context.h"
#include "report.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* States of a job. STAGED: the tensors of a save are no longer read. The last three are terminal.
 * Since: 0.1 unstable */
enum {
  SHW_JOB_QUEUED = 0,
  SHW_JOB_RUNNING = 1,
  SHW_JOB_STAGED = 2,
  SHW_JOB_SUCCEEDED = 3,
  SHW_JOB_FAILED = 4,
  SHW_JOB_CANCELLED = 5
};

/* A save or load in the background.
 * Since: 0.1 unstable */
typedef struct shw_job shw_job;

/* Ends calls that were given it, from another thread. One may serve many calls.
 * Since: 0.1 unstable */
typedef struct shw_cancellation shw_cancellation;

/* How far a job is. `stage` is static text such as "plan", "stage", "write", "commit"; bytes, items
 * and time never go down. A load counts what it reads: whole digest blocks.
 * Since: 0.1 unstable */
typedef struct shw_progress {
  uint32_t struct_size;
  uint32_t flags;
  int32_t state;
  int32_t reserved0;
  const char* stage;
  uint64_t bytes_done;
  uint64_t bytes_total;
  uint64_t items_done;
  uint64_t items_total;
  int64_t elapsed_ns;
} shw_progress;

/* Byte size of the oldest published shw_progress.
 * Since: 0.1 unstable */
#define SHW_PROGRESS_SIZE_V1 64

#define SHW_PROGRESS_INIT {sizeof(shw_progress), 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Tells how far a save or load is: the `progress` of its options. Called when work begins, then at
 * most once in 100 ms, and once more when it has succeeded (`state` SUCCEEDED, before that
 * RUNNING), before the call returns or the job is terminal; one call at a time, on the thread that
 * called or one of the library. It returns soon and calls nothing that is not callback-safe.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_progress_fn)(void* user, const shw_progress* progress);

/* Called once when a job has ended, on a thread of the library; see shw_job_on_done.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_job_done_fn)(void* user);

/* Fills a progress struct with zeros and its size, as SHW_PROGRESS_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_progress_init(shw_progress* progress, uint32_t struct_size) SHW_NOEXCEPT;

/* Waits until the job is terminal and returns its status, or PENDING (`err` untouched) when
 * `timeout_ns` passed: 0 = do not wait, negative = no limit. A failure gives a copy of the error.
 * Threads: any
 * Blocks: wait
 * Owns: -
 * Errors: PENDING, and what the job may end with
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_job_wait(shw_job* job, int64_t timeout_ns,
                                             shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Waits until the job no longer reads the tensors of the host: OK when it is staged, succeeded or
 * was a load that ended; else PENDING or the failure. Time-outs as in shw_job_wait.
 * Threads: any
 * Blocks: wait
 * Owns: -
 * Errors: PENDING, and what the job may end with
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_job_wait_staged(shw_job* job, int64_t timeout_ns,
                                                    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* State of the job: one of the SHW_JOB_ numbers.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API int32_t shw_job_poll(const shw_job* job) SHW_NOEXCEPT;

/* Writes how far the job is; `out->struct_size` must be set.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_job_progress(const shw_job* job, shw_progress* out,
                                                 shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Asks the job to stop and returns at once. The job still ends in a terminal state; after its
 * commit point it ends SUCCEEDED. May be called any number of times. NULL is skipped.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_job_cancel(shw_job* job) SHW_NOEXCEPT;

/* Has `on_done(user)` called once, when the job has ended, in whatever way, and uses nothing that
 * it was lent any more. It runs on the context's background thread, calls nothing of the library
 * and returns soon; shw_context_shutdown answers OK after it. The handle may be released before;
 * kept for a thread that this wakes, it takes DLPack memory along. FAILED_PRECONDITION, and no
 * call, when the job has ended already or has a function.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_job_on_done(shw_job* job, shw_job_done_fn on_done,
                                                void* SHW_NULLABLE user,
                                                shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Error of a job that failed or was cancelled, borrowed until the job is released; NULL otherwise.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const shw_error* shw_job_error(const shw_job* job) SHW_NOEXCEPT;

/* Report of a job that succeeded; FAILED_PRECONDITION before that.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_job_report(const shw_job* job, shw_report** out,
                                               shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* As shw_collective_decline, as a job: in its turn behind the jobs that the context has, as
 * shw_save_async and shw_load_async would be. The job ends FAILED with what the others were told.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_collective_decline_async(
    shw_context* context, shw_collective* collective, int32_t call, shw_status code,
    const char* SHW_NULLABLE message, uint64_t message_size, shw_job** out,
    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the handle; the job goes on. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: job
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_job_release(shw_job* SHW_NULLABLE job) SHW_NOEXCEPT;

/* Makes a cancellation for the options of saves, loads and planners. Jobs have shw_job_cancel.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_cancellation_create(shw_cancellation** out,
                                                        shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Asks the calls that were given it to stop and returns at once, also before they begin. Each ends
 * with CANCELLED at its next step; a save that has reached its commit point ends OK. A call into
 * the host's storage or transport is not broken off. May be called any number of times. NULL is
 * skipped.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_cancellation_cancel(shw_cancellation* cancellation) SHW_NOEXCEPT;

/* Releases the handle; calls that were given it keep what they need. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: cancellation
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_cancellation_release(shw_cancellation* SHW_NULLABLE cancellation) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_JOB_H */

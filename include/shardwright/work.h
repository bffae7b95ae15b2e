/* SPDX-License-Identifier: Apache-2.0
 *
 * Works: operations of communicators and of HSDP units that are under way. Nothing is called back:
 * a host waits or polls. */
#ifndef SHARDWRIGHT_WORK_H
#define SHARDWRIGHT_WORK_H

#include "base.h"
#include "communicator.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Waits until the operation has ended: OK; PENDING after `timeout_ns` (-1 = no limit but that of
 * the operation). A failure is returned again at each further call.
 * Threads: exclusive(work)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, PENDING, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_work_wait(shw_work* work, int64_t timeout_ns,
                                              shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* The same without waiting: OK or PENDING.
 * Threads: exclusive(work)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, PENDING, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_work_poll(shw_work* work,
                                              shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* A stream of a device goes on after the operation, and the host does not wait; for memory of the
 * host it waits.
 * Threads: exclusive(work)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_work_order(shw_work* work, uint64_t stream,
                                               shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the work; one that has not ended is given up, and where other ranks still need this one
 * the communicator has failed. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: work
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_work_release(shw_work* SHW_NULLABLE work) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_WORK_H */

/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators: collectives over elements of tensors, asynchronous, in the memory of a device or
 * of the host; what HSDP gathers and reduces with (a shw_collective moves bytes of the host). All
 * ranks issue the same operations in the same order, each from one thread at a time; ranks out of
 * step get ABORTED with details `rank`, `expected` and `found`. An operation that fails ends the
 * communicator on all ranks as far as the transport reaches them. */
#ifndef SHARDWRIGHT_COMMUNICATOR_H
#define SHARDWRIGHT_COMMUNICATOR_H

#include "base.h"
#include "collective.h"
#include "communicator_table.h"
#include "context.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* One rank's end of a transport. Used by one thread at a time, abort and release aside.
 * Since: 0.1 unstable */
typedef struct shw_communicator shw_communicator;

/* Ranks of one process that share a transport.
 * Since: 0.1 unstable */
typedef struct shw_communicator_group shw_communicator_group;

/* An operation under way; it keeps what it belongs to alive. Used by one thread at a time.
 * Since: 0.1 unstable */
typedef struct shw_work shw_work;

/* Fills a call with zeros and its size, as SHW_COMMUNICATOR_CALL_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_communicator_call_init(shw_communicator_call* call,
                                        uint32_t struct_size) SHW_NOEXCEPT;

/* Fills a table with zeros, its size and the interface version. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_communicator_vtable_init(shw_communicator_vtable* vtable,
                                          uint32_t struct_size) SHW_NOEXCEPT;

/* Makes a communicator of a host's table, which is copied. On success it owns `vtable->user` and
 * calls the table's release once.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_communicator_create(const shw_communicator_vtable* vtable,
                                                        shw_communicator** out,
                                                        shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes `size` ranks in this process, each to be used by a thread of its own.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_communicator_group_create(
    int32_t size, shw_communicator_group** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Gives the communicator of one rank of the group; each rank can be taken once. A rank whose
 * communicator is released while others wait for it makes them return ABORTED naming it.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_communicator_group_member(shw_communicator_group* group, int32_t rank, shw_communicator** out,
                              shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the group; its members live on. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: group
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_communicator_group_release(shw_communicator_group* SHW_NULLABLE group)
    SHW_NOEXCEPT;

/* Makes one rank of `size` that moves nothing and always succeeds, for estimates and for checks of
 * what would be issued.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_communicator_create_fake(
    int32_t rank, int32_t size, shw_communicator** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Puts a communicator behind an emulated link of this rank: each operation ends `latency_ns` after
 * its bytes have come at `bytes_per_second` (0 = at once). No processor is used meanwhile. `out`
 * keeps `communicator` alive, which is used through it alone.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_communicator_create_delay(
    shw_communicator* communicator, int64_t latency_ns, double bytes_per_second,
    shw_communicator** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes a communicator over a collective, which it keeps alive: works everywhere, waits for other
 * ranks where an operation is issued.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_communicator_create_over(
    shw_collective* collective, shw_communicator** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes a communicator of a loaded plugin; `config` is text that the plugin understands.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_context_open_communicator(
    shw_context* context, const char* plugin, const char* SHW_NULLABLE config, uint64_t config_size,
    shw_communicator** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Rank of this end, from 0.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API int32_t shw_communicator_rank(const shw_communicator* communicator) SHW_NOEXCEPT;

/* Number of ranks; 0 for NULL.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API int32_t shw_communicator_size(const shw_communicator* communicator) SHW_NOEXCEPT;

/* SHW_COMMUNICATOR_ bits.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_communicator_capabilities(const shw_communicator* communicator) SHW_NOEXCEPT;

/* Name of the transport, such as "threads". Borrowed until the communicator is released.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_communicator_name(const shw_communicator* communicator,
                                          uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Issues all_gather: `in` has call->count elements, `out` those of all ranks in rank order. Sizes
 * are in bytes, here and below, and those that count and dtype say.
 * Threads: exclusive(communicator)
 * Blocks: collective
 * Owns: out_work
 * Errors: INVALID_ARGUMENT, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_communicator_all_gather(
    shw_communicator* communicator, const shw_communicator_call* call, const void* SHW_NULLABLE in,
    uint64_t in_size, void* SHW_NULLABLE out, uint64_t out_size, shw_work** out_work,
    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Issues all_to_all: `in` and `out` have call->count elements for and from each rank.
 * Threads: exclusive(communicator)
 * Blocks: collective
 * Owns: out_work
 * Errors: INVALID_ARGUMENT, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_communicator_all_to_all(
    shw_communicator* communicator, const shw_communicator_call* call, const void* SHW_NULLABLE in,
    uint64_t in_size, void* SHW_NULLABLE out, uint64_t out_size, shw_work** out_work,
    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Issues reduce_scatter: `in` has call->count elements for each rank, `out` call->count elements,
 * reduced as call->op says.
 * Threads: exclusive(communicator)
 * Blocks: collective
 * Owns: out_work
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_communicator_reduce_scatter(
    shw_communicator* communicator, const shw_communicator_call* call, const void* SHW_NULLABLE in,
    uint64_t in_size, void* SHW_NULLABLE out, uint64_t out_size, shw_work** out_work,
    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Issues all_reduce of call->count elements in place.
 * Threads: exclusive(communicator)
 * Blocks: collective
 * Owns: out_work
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_communicator_all_reduce(
    shw_communicator* communicator, const shw_communicator_call* call, void* SHW_NULLABLE data,
    uint64_t size, shw_work** out_work, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Issues broadcast of call->count elements of the root, in place.
 * Threads: exclusive(communicator)
 * Blocks: collective
 * Owns: out_work
 * Errors: INVALID_ARGUMENT, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_communicator_broadcast(
    shw_communicator* communicator, const shw_communicator_call* call, void* SHW_NULLABLE data,
    uint64_t size, int32_t root, shw_work** out_work, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Issues a barrier, which ends when all ranks have issued it.
 * Threads: exclusive(communicator)
 * Blocks: collective
 * Owns: out_work
 * Errors: INVALID_ARGUMENT, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_communicator_barrier(shw_communicator* communicator,
                                                         const shw_communicator_call* call,
                                                         shw_work** out_work,
                                                         shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Wakes all ranks that wait in this communicator, and ends it; they return `code` with the message.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_communicator_abort(shw_communicator* communicator,
                                                       shw_status code,
                                                       const char* SHW_NULLABLE message,
                                                       uint64_t message_size,
                                                       shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the communicator; works, meshes and other communicators that use it keep it alive. NULL
 * is allowed.
 * Threads: any
 * Blocks: no
 * Owns: communicator
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_communicator_release(shw_communicator* SHW_NULLABLE communicator) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_COMMUNICATOR_H */

/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives: the host's transport between ranks, as operations on host bytes that all ranks call
 * in the same order from one thread. Built in: one rank, and several ranks in one process. Every
 * other transport enters as a table of functions (collective_table.h). */
#ifndef SHARDWRIGHT_COLLECTIVE_H
#define SHARDWRIGHT_COLLECTIVE_H

#include "base.h"
#include "collective_table.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Calls that the ranks of a collective make together.
 * Since: 0.1 unstable */
enum { SHW_CALL_SAVE = 0, SHW_CALL_LOAD = 1 };

/* One rank's end of a transport. Used by one thread at a time, abort and release aside.
 * Since: 0.1 unstable */
typedef struct shw_collective shw_collective;

/* Ranks of one process that share a transport.
 * Since: 0.1 unstable */
typedef struct shw_collective_group shw_collective_group;

/* Fills a call with zeros and its size, as SHW_COLLECTIVE_CALL_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_collective_call_init(shw_collective_call* call, uint32_t struct_size) SHW_NOEXCEPT;

/* Fills a table with zeros, its size and the interface version. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_collective_vtable_init(shw_collective_vtable* vtable,
                                        uint32_t struct_size) SHW_NOEXCEPT;

/* Makes the collective of a single rank.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_collective_create_single(shw_collective** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes `size` ranks in this process, each to be used by a thread of its own.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_collective_group_create(
    int32_t size, shw_collective_group** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Gives the collective of one rank of the group; each rank can be taken once. A rank whose
 * collective is released while others wait makes them return ABORTED naming it.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_collective_group_member(shw_collective_group* group, int32_t rank, shw_collective** out,
                            shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the group; its members live on. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: group
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_collective_group_release(shw_collective_group* SHW_NULLABLE group) SHW_NOEXCEPT;

/* Makes a collective of a host's table, which is copied. On success the collective owns
 * `vtable->user` and calls the table's release once.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_collective_create(const shw_collective_vtable* vtable,
                                                      shw_collective** out,
                                                      shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes a collective of the ranks of another one through the memory of their machine, where all of
 * them run on one (2 to 64 ranks of one user that reach each other's memory). An operation that
 * takes a network a fraction of a millisecond takes some microseconds there. Where they do not,
 * `out` is another end of the same transport. Collective over `collective`: one all_gather, with
 * `call`. `out` keeps that transport alive and aborts it when it is aborted or fails; until `out`
 * is released the transport is used through it alone. A rank whose process ends is named
 * (UNAVAILABLE) to all that wait for it.
 * Threads: exclusive(collective)
 * Blocks: collective
 * Owns: out
 * Errors: INVALID_ARGUMENT, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_collective_create_node(shw_collective* collective, const shw_collective_call* SHW_NULLABLE call,
                           shw_collective** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Rank of this end, from 0.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API int32_t shw_collective_rank(const shw_collective* collective) SHW_NOEXCEPT;

/* Number of ranks; 0 for NULL.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API int32_t shw_collective_size(const shw_collective* collective) SHW_NOEXCEPT;

/* Name of the transport, such as "threads". Borrowed until the collective is released.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_collective_name(const shw_collective* collective,
                                        uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Waits until all ranks are here. `call` NULL = all zero, here and below.
 * Threads: exclusive(collective)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_collective_barrier(shw_collective* collective,
                                                       const shw_collective_call* SHW_NULLABLE call,
                                                       shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Sends the root's bytes to all ranks; `size` is equal on all.
 * Threads: exclusive(collective)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_collective_broadcast(shw_collective* collective, const shw_collective_call* SHW_NULLABLE call,
                         void* SHW_NULLABLE data, uint64_t size, int32_t root,
                         shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Gathers `size` bytes of each rank in rank order into `gathered` (size x ranks bytes).
 * Threads: exclusive(collective)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_collective_all_gather(shw_collective* collective, const shw_collective_call* SHW_NULLABLE call,
                          const void* SHW_NULLABLE data, uint64_t size, void* SHW_NULLABLE gathered,
                          shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Gathers sizes[rank] bytes of each rank back to back; `sizes` has one value per rank.
 * Threads: exclusive(collective)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_collective_all_gather_v(
    shw_collective* collective, const shw_collective_call* SHW_NULLABLE call,
    const void* SHW_NULLABLE data, uint64_t size, void* SHW_NULLABLE gathered,
    const uint64_t* sizes, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* The root gets sizes[rank] bytes of each rank back to back in `gathered`. Both are the root's only
 * (one size per rank) and not looked at elsewhere. Sizes that are not those of the ranks are
 * INVALID_ARGUMENT on all of them.
 * Threads: exclusive(collective)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_collective_gather_v(
    shw_collective* collective, const shw_collective_call* SHW_NULLABLE call,
    const void* SHW_NULLABLE data, uint64_t size, void* SHW_NULLABLE gathered,
    const uint64_t* SHW_NULLABLE sizes, int32_t root, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Gives each rank sizes[rank] bytes, which lie back to back in the root's `parts`; the rank gets
 * them in `data`, whose size it knows. `parts` and `sizes` are the root's only (one size per rank)
 * and not looked at elsewhere. Sizes as with gather_v.
 * Threads: exclusive(collective)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_collective_scatter_v(
    shw_collective* collective, const shw_collective_call* SHW_NULLABLE call,
    const void* SHW_NULLABLE parts, const uint64_t* SHW_NULLABLE sizes, void* SHW_NULLABLE data,
    uint64_t size, int32_t root, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Sends sent_sizes[rank] bytes to each rank and receives received_sizes[rank] bytes from it, this
 * rank itself included. The parts lie back to back in rank order in `sent` and in `received`, which
 * have no byte in common; both rows have one size per rank. What a rank expects of another one must
 * be what that one sends it: else all fail with INVALID_ARGUMENT, and no byte moves.
 * Threads: exclusive(collective)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_collective_all_to_all_v(
    shw_collective* collective, const shw_collective_call* SHW_NULLABLE call,
    const void* SHW_NULLABLE sent, const uint64_t* sent_sizes, void* SHW_NULLABLE received,
    const uint64_t* received_sizes, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Reduces `count` values in place on all ranks with one of the SHW_REDUCE_ operations.
 * Threads: exclusive(collective)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_collective_all_reduce_i64(
    shw_collective* collective, const shw_collective_call* SHW_NULLABLE call,
    int64_t* SHW_NULLABLE values, uint64_t count, int32_t operation,
    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Wakes all ranks that wait in this collective; they return `code` with the message.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_collective_abort(shw_collective* collective, shw_status code,
                                                     const char* SHW_NULLABLE message,
                                                     uint64_t message_size,
                                                     shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Takes part in the save or load (SHW_CALL_) that the other ranks make now, in place of this rank's
 * own call, and tells them that it failed: they return `code` with `message` at once. For a host
 * that finds out, on its way to shw_save or shw_load, that it cannot make the call; those tell the
 * others of their own arguments themselves. Returns when all ranks have heard; nothing happens on a
 * collective of one rank. shw_collective_decline_async goes with jobs. Refused in a callback, as
 * the calls themselves, the collective is aborted, unless a call or job has it.
 * Threads: exclusive(collective)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_collective_decline(shw_collective* collective, int32_t call,
                                                       shw_status code,
                                                       const char* SHW_NULLABLE message,
                                                       uint64_t message_size,
                                                       shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the collective; jobs that use it keep it alive. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: collective
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_collective_release(shw_collective* SHW_NULLABLE collective) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_COLLECTIVE_H */

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a host brings as a collective: a table of functions on host bytes, which all ranks call in
 * the same order. Methods run on one thread of the library at a time, abort and release aside, and
 * borrow their arguments for the call. An error goes out through `err`, made by shw_error_create; a
 * status alone is accepted. */
#ifndef SHARDWRIGHT_COLLECTIVE_TABLE_H
#define SHARDWRIGHT_COLLECTIVE_TABLE_H

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Operation of all_reduce_i64; a SUM that does not fit is OUT_OF_RANGE.
 * Since: 0.1 unstable */
enum { SHW_REDUCE_MIN = 0, SHW_REDUCE_MAX = 1, SHW_REDUCE_SUM = 2 };

/* Numbers an operation: equal `sequence` and `tag` on all ranks. `timeout_ns` 0 = library default
 * (1,800 s), -1 = no limit. `group` is reserved and NULL.
 * Since: 0.1 unstable */
typedef struct shw_collective_call {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t sequence;
  uint32_t tag;
  uint32_t reserved0;
  int64_t timeout_ns;
  void* group;
} shw_collective_call;

/* Waits until all ranks are here.
 * Threads: exclusive(user)
 * Blocks: collective
 * Owns: -
 * Errors: ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_collective_barrier_fn)(void* user,
                                                            const shw_collective_call* call,
                                                            shw_error** err);

/* Sends the root's bytes to all; `size` is equal on all ranks.
 * Threads: exclusive(user)
 * Blocks: collective
 * Owns: -
 * Errors: ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_collective_broadcast_fn)(void* user,
                                                              const shw_collective_call* call,
                                                              void* data, uint64_t size,
                                                              int32_t root, shw_error** err);

/* Gathers equal sizes in rank order; `out` has size x ranks bytes.
 * Threads: exclusive(user)
 * Blocks: collective
 * Owns: -
 * Errors: ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_collective_all_gather_fn)(void* user,
                                                               const shw_collective_call* call,
                                                               const void* in, uint64_t size,
                                                               void* out, shw_error** err);

/* Gathers `sizes[rank]` bytes of each rank back to back; the sizes are known to all ranks.
 * Threads: exclusive(user)
 * Blocks: collective
 * Owns: -
 * Errors: ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_collective_all_gather_v_fn)(void* user,
                                                                 const shw_collective_call* call,
                                                                 const void* in, uint64_t size,
                                                                 void* out, const uint64_t* sizes,
                                                                 shw_error** err);

/* The root gets `sizes[rank]` bytes of each rank back to back in `out`; the sizes are known to the
 * root only: elsewhere `out` and `sizes` are NULL.
 * Threads: exclusive(user)
 * Blocks: collective
 * Owns: -
 * Errors: ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_collective_gather_v_fn)(void* user,
                                                             const shw_collective_call* call,
                                                             const void* in, uint64_t size,
                                                             void* out, const uint64_t* sizes,
                                                             int32_t root, shw_error** err);

/* Gives each rank `sizes[rank]` bytes, which lie back to back in the root's `in`; a rank knows the
 * size of its own part, the root all of them: elsewhere `in` and `sizes` are NULL.
 * Threads: exclusive(user)
 * Blocks: collective
 * Owns: -
 * Errors: ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_collective_scatter_v_fn)(void* user,
                                                              const shw_collective_call* call,
                                                              const void* in, const uint64_t* sizes,
                                                              void* out, uint64_t size,
                                                              int32_t root, shw_error** err);

/* Sends in_sizes[rank] bytes to each rank and receives out_sizes[rank] bytes from it, this rank
 * itself included; the parts lie back to back in rank order in `in` and in `out`, which have no
 * byte in common. Both rows of sizes are known beforehand: out_sizes[r] here is in_sizes[here] on
 * rank r. A buffer of no bytes may be NULL.
 * Threads: exclusive(user)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_collective_all_to_all_v_fn)(
    void* user, const shw_collective_call* call, const void* in, const uint64_t* in_sizes,
    void* out, const uint64_t* out_sizes, shw_error** err);

/* Reduces `count` values in place on all ranks with one of the SHW_REDUCE_ operations.
 * Threads: exclusive(user)
 * Blocks: collective
 * Owns: -
 * Errors: OUT_OF_RANGE, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_collective_all_reduce_fn)(void* user,
                                                               const shw_collective_call* call,
                                                               int64_t* values, uint64_t count,
                                                               int32_t operation, shw_error** err);

/* Wakes all ranks that wait in this collective; they return `code` with the message.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_collective_abort_fn)(void* user, shw_status code,
                                                    const char* message, uint64_t message_size);

/* Ends the table's use of `user`; called once.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_collective_release_fn)(void* user);

/* Methods of a collective. `release` may be NULL. `gather_v`, `scatter_v` and `all_to_all_v` are
 * each there on all ranks or NULL on all: then all_gather_v and broadcast take their place, by
 * which every rank receives what is meant for all. `reserved3` and `reserved5` to `reserved7` stand
 * for split, group_release, start and test, and must be NULL.
 * Since: 0.1 unstable */
typedef struct shw_collective_vtable {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint64_t capabilities;
  int32_t rank;
  int32_t size;
  const char* name;
  void* user;
  shw_collective_barrier_fn barrier;
  shw_collective_broadcast_fn broadcast;
  shw_collective_all_gather_fn all_gather;
  shw_collective_all_gather_v_fn all_gather_v;
  shw_collective_gather_v_fn gather_v;
  shw_collective_scatter_v_fn scatter_v;
  void* reserved3;
  shw_collective_all_reduce_fn all_reduce_i64;
  shw_collective_all_to_all_v_fn all_to_all_v;
  void* reserved5;
  void* reserved6;
  void* reserved7;
  shw_collective_abort_fn abort;
  shw_collective_release_fn release;
} shw_collective_vtable;

/* Byte sizes of the oldest published structs of this header.
 * Since: 0.1 unstable */
#define SHW_COLLECTIVE_CALL_SIZE_V1 40
#define SHW_COLLECTIVE_VTABLE_SIZE_V1 160

#define SHW_COLLECTIVE_CALL_INIT {sizeof(shw_collective_call), 0, 0, 0, 0, 0, 0}
/* clang-format off */
#define SHW_COLLECTIVE_VTABLE_INIT                                                             \
  {sizeof(shw_collective_vtable), 0, SHW_ABI_MAJOR, SHW_ABI_MINOR, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
   0, 0, 0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_COLLECTIVE_TABLE_H */

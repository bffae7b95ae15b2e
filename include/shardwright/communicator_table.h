/* SPDX-License-Identifier: Apache-2.0
 *
 * What a host or plugin brings as a communicator: a table of functions on elements of tensors,
 * which all ranks call in the same order, each from one thread at a time (abort and release aside).
 * An operation is issued without waiting for other ranks and ended by work_wait; what it reads and
 * writes stays as it is until then, or until work_release where that failed or was not called. An
 * error goes out through `err`, made by shw_error_create; a status alone is accepted. */
#ifndef SHARDWRIGHT_COMMUNICATOR_TABLE_H
#define SHARDWRIGHT_COMMUNICATOR_TABLE_H

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* How elements of ranks are reduced: sum; mean; sum of each input times the call's `scale`; the
 * largest; the smallest. bfloat16 and float16 are added in float32 and rounded once.
 * Since: 0.1 unstable */
enum {
  SHW_REDUCTION_SUM = 0,
  SHW_REDUCTION_AVERAGE = 1,
  SHW_REDUCTION_SCALED_SUM = 2,
  SHW_REDUCTION_MAX = 3,
  SHW_REDUCTION_MIN = 4
};

/* What a communicator can, as bits: SHW_REDUCTION_AVERAGE; SHW_REDUCTION_SCALED_SUM; `in` of
 * all_gather may be this rank's part of `out`; sums do not depend on who comes when; parts of
 * different sizes; memory of the host; memory of a device; memory of its own that is faster; an
 * operation is issued without waiting for other ranks.
 * Since: 0.1 unstable */
enum {
  SHW_COMMUNICATOR_AVERAGE = 1,
  SHW_COMMUNICATOR_SCALED_SUM = 2,
  SHW_COMMUNICATOR_IN_PLACE_ALL_GATHER = 4,
  SHW_COMMUNICATOR_ORDERED_SUM = 8,
  SHW_COMMUNICATOR_UNEVEN = 16,
  SHW_COMMUNICATOR_HOST_MEMORY = 32,
  SHW_COMMUNICATOR_DEVICE_MEMORY = 64,
  SHW_COMMUNICATOR_REGISTERED_MEMORY = 128,
  SHW_COMMUNICATOR_ASYNC = 256
};

/* One operation; all but `stream` and `timeout_ns` are equal on all ranks. `count`: elements that a
 * rank contributes to each part; `unit_id`: whose operation it is, for messages; `tag`: anything
 * that callers want compared; `dtype` SHW_BOOL to SHW_UINT4; `op` SHW_REDUCTION_; `scale` of
 * SHW_REDUCTION_SCALED_SUM, which 0 is not; `stream` on which the inputs are ready, 0 for memory of
 * the host. An operation that has not ended `timeout_ns` after it was issued is DEADLINE_EXCEEDED
 * naming it; 0 = library default (1,800 s), -1 = no limit.
 * Since: 0.1 unstable */
typedef struct shw_communicator_call {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t sequence;
  uint64_t unit_id;
  uint64_t count;
  int32_t dtype;
  int32_t op;
  double scale;
  uint64_t stream;
  int64_t timeout_ns;
  uint32_t tag;
  uint32_t reserved0;
} shw_communicator_call;

/* Issues an operation that reads `in` and writes `out`; `work` receives what it is ended by.
 * all_gather: `in` has count elements, `out` those of all ranks in rank order. all_to_all: both
 * have count elements for and from each rank. reduce_scatter: `in` has count elements for each
 * rank, `out` count elements.
 * Threads: exclusive(user)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_communicator_move_fn)(void* user,
                                                           const shw_communicator_call* call,
                                                           const void* in, void* out, void** work,
                                                           shw_error** err);

/* Issues all_reduce: count elements in place.
 * Threads: exclusive(user)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_communicator_all_reduce_fn)(void* user,
                                                                 const shw_communicator_call* call,
                                                                 void* data, void** work,
                                                                 shw_error** err);

/* Issues broadcast: count elements of the root, in place.
 * Threads: exclusive(user)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_communicator_broadcast_fn)(void* user,
                                                                const shw_communicator_call* call,
                                                                void* data, int32_t root,
                                                                void** work, shw_error** err);

/* Issues barrier: ends when all ranks have issued it.
 * Threads: exclusive(user)
 * Blocks: no
 * Owns: -
 * Errors: ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_communicator_barrier_fn)(void* user,
                                                              const shw_communicator_call* call,
                                                              void** work, shw_error** err);

/* Waits until the operation has ended: OK; PENDING after `timeout_ns` (-1 = no limit but that of
 * the call); its failure, again at each further call.
 * Threads: exclusive(user)
 * Blocks: collective
 * Owns: -
 * Errors: PENDING, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_communicator_work_wait_fn)(void* user, void* work,
                                                                int64_t timeout_ns,
                                                                shw_error** err);

/* The same without waiting, and without issuing anything.
 * Threads: exclusive(user)
 * Blocks: no
 * Owns: -
 * Errors: PENDING, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_communicator_work_test_fn)(void* user, void* work,
                                                                shw_error** err);

/* A stream of a device goes on after the operation.
 * Threads: exclusive(user)
 * Blocks: no
 * Owns: -
 * Errors: ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_communicator_work_order_fn)(void* user, void* work,
                                                                 uint64_t stream, shw_error** err);

/* Gives an operation up or forgets one that has ended; called once, and after it the memory of the
 * operation is not touched any more.
 * Threads: exclusive(user)
 * Blocks: no
 * Owns: work
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_communicator_work_release_fn)(void* user, void* work);

/* Wakes all ranks that wait in this communicator, and ends it: they return `code` with the message.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_communicator_abort_fn)(void* user, shw_status code,
                                                      const char* message, uint64_t message_size);

/* Ends the table's use of `user`; called once, after all of its works.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_communicator_release_fn)(void* user);

/* Methods of a communicator. `reduce_scatter`, `all_reduce`, `broadcast` and `barrier` are each
 * there on all ranks or NULL on all: then they are made of the others, sums in rank order.
 * `work_order` NULL = the host waits. `release` may be NULL. `capabilities` are SHW_COMMUNICATOR_
 * bits. `reserved0` and `reserved1` stand for memory of the transport and must be NULL.
 * Since: 0.1 unstable */
typedef struct shw_communicator_vtable {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint64_t capabilities;
  int32_t rank;
  int32_t size;
  const char* name;
  void* user;
  shw_communicator_move_fn all_gather;
  shw_communicator_move_fn all_to_all;
  shw_communicator_move_fn reduce_scatter;
  shw_communicator_all_reduce_fn all_reduce;
  shw_communicator_broadcast_fn broadcast;
  shw_communicator_barrier_fn barrier;
  shw_communicator_work_wait_fn work_wait;
  shw_communicator_work_test_fn work_test;
  shw_communicator_work_order_fn work_order;
  shw_communicator_work_release_fn work_release;
  void* reserved0;
  void* reserved1;
  shw_communicator_abort_fn abort;
  shw_communicator_release_fn release;
} shw_communicator_vtable;

/* Byte sizes of the oldest published structs of this header.
 * Since: 0.1 unstable */
#define SHW_COMMUNICATOR_CALL_SIZE_V1 72
#define SHW_COMMUNICATOR_VTABLE_SIZE_V1 160

#define SHW_COMMUNICATOR_CALL_INIT {sizeof(shw_communicator_call), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
/* clang-format off */
#define SHW_COMMUNICATOR_VTABLE_INIT                                                              \
  {sizeof(shw_communicator_vtable), 0, SHW_ABI_MAJOR, SHW_ABI_MINOR, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
   0, 0, 0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_COMMUNICATOR_TABLE_H */

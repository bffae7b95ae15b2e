/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads in which ranks read stored blocks for each other, for hosts that move plans and blocks
 * themselves. In steps:
 *   1  each rank: shw_load_planner_local_plan, then shw_load_planner_want_list;
 *   2  one rank, with the want lists of all: shw_exchange_plans, one plan for each rank;
 *   3  each rank: shw_load_exchange_create with its exchange plan, then for each of the rounds, of
 *      which all ranks have equally many: shw_load_exchange_begin_round, the movement of the bytes
 *      between all ranks by the host, shw_load_exchange_end_round;
 *   4  each rank: shw_load_exchange_finish reads what no other rank wants.
 * A rank that fails has to be told to the others by the host. With a collective shw_load does all
 * of this by itself, see `exchange` of its options. */
#ifndef SHARDWRIGHT_LOAD_EXCHANGE_H
#define SHARDWRIGHT_LOAD_EXCHANGE_H

#include "base.h"
#include "load.h"
#include "plan.h"
#include "report.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* The exchange of one load of one rank: its rounds and what remains after them.
 * Since: 0.1 unstable */
typedef struct shw_load_exchange shw_load_exchange;

/* One round of one rank. `outgoing` holds what goes to the others, `incoming` is filled with what
 * comes from them: the bytes for or from rank 0, then rank 1 and so on without gaps, as many as
 * `outgoing_sizes` and `incoming_sizes` say for each of `rank_count` ranks; those of the rank
 * itself are 0. What rank A has for rank B in `outgoing` goes to the place of A in `incoming` of B,
 * where equally many bytes are expected. All pointers are borrowed until the round ends or the
 * exchange is released; those to bytes may be NULL where their size is 0.
 * Since: 0.1 unstable */
typedef struct shw_exchange_round {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t rank_count;
  const void* outgoing;
  uint64_t outgoing_size;
  const uint64_t* outgoing_sizes;
  void* incoming;
  uint64_t incoming_size;
  const uint64_t* incoming_sizes;
} shw_exchange_round;

/* Byte size of the oldest published shw_exchange_round.
 * Since: 0.1 unstable */
#define SHW_EXCHANGE_ROUND_SIZE_V1 64

#define SHW_EXCHANGE_ROUND_INIT {sizeof(shw_exchange_round), 0, 0, 0, 0, 0, 0, 0, 0}

/* Fills a round with zeros and its size, as SHW_EXCHANGE_ROUND_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_exchange_round_init(shw_exchange_round* round, uint32_t struct_size) SHW_NOEXCEPT;

/* Lists the stored blocks that the load plan of this planner's rank wants, as a plan of kind
 * SHW_PLAN_WANT_LIST for the rank that plans the exchange. `world_size` is the number of ranks; a
 * rank with less than 2 MiB to read wants nothing from others. A load plan of another state or
 * checkpoint is FAILED_PRECONDITION.
 * Threads: exclusive(planner)
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, DATA_LOSS, ABORTED, CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE,
 *   PERMISSION_DENIED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_load_planner_want_list(shw_load_planner* planner, const shw_plan* load_plan, int32_t world_size,
                           shw_plan** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Plans the exchange of all ranks from their want lists, `count` in rank order. `plans` has room
 * for `count` plans of kind SHW_PLAN_EXCHANGE, that of rank r at place r: all are written, or none.
 * Lists of other ranks, another number of ranks or different generations are INVALID_ARGUMENT
 * naming the rank. Equal lists give equal plans.
 * Threads: any
 * Blocks: no
 * Owns: plans
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_exchange_plans(const shw_plan* const* want_lists,
                                                   uint64_t count, shw_plan** plans,
                                                   shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Begins a load of what `load_plan` says whose blocks come as `exchange_plan` says. It keeps what
 * the planner has, its cancellation too, but not the handles; the planner's deadline counts from
 * here. The memory of all rounds is taken here from the memory budget. An exchange plan of another
 * rank or generation, or of other blocks than the load plan wants, and a load plan of another state
 * or checkpoint, are FAILED_PRECONDITION; a budget without room is RESOURCE_EXHAUSTED.
 * Threads: exclusive(planner)
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, DATA_LOSS, ABORTED, CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE,
 *   PERMISSION_DENIED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_load_exchange_create(shw_load_planner* planner,
                                                         const shw_plan* load_plan,
                                                         const shw_plan* exchange_plan,
                                                         shw_load_exchange** out,
                                                         shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Gives how many rounds there are, the same number on all ranks; 0 where nothing is exchanged.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_load_exchange_round_count(const shw_load_exchange* exchange) SHW_NOEXCEPT;

/* Begins the next round: what the rank has to read for others in it has been read and checked. A
 * round that has not ended, and one more than there are, are FAILED_PRECONDITION and change
 * nothing; after any other failure, here and below, the load has failed and all calls say so.
 * Threads: exclusive(exchange)
 * Blocks: io
 * Owns: -
 * Errors: INVALID_ARGUMENT, DATA_LOSS, ABORTED, CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE,
 *   PERMISSION_DENIED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_load_exchange_begin_round(shw_load_exchange* exchange, shw_exchange_round* out,
                              shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Ends the round when `incoming` is filled: what came is checked, unless the planner's `verify` is
 * off, and goes to where it is wanted. The memory of the round may not be used any more. Without a
 * round that has begun it is FAILED_PRECONDITION.
 * Threads: exclusive(exchange)
 * Blocks: io
 * Owns: -
 * Errors: DATA_LOSS, ABORTED, CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE, PERMISSION_DENIED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_load_exchange_end_round(shw_load_exchange* exchange, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Reads what is not exchanged, when all rounds have ended, and hands objects to the state. Once;
 * earlier or again it is FAILED_PRECONDITION.
 * Threads: exclusive(exchange)
 * Blocks: io
 * Owns: out
 * Errors: DATA_LOSS, ABORTED, CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE, PERMISSION_DENIED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_load_exchange_finish(shw_load_exchange* exchange,
                                                         shw_report** out,
                                                         shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the exchange and the memory of its round; waits for reads that are under way. Tensors
 * hold a part of the bytes where it was not finished. NULL is allowed.
 * Threads: any
 * Blocks: io
 * Owns: exchange
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_load_exchange_release(shw_load_exchange* SHW_NULLABLE exchange) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_LOAD_EXCHANGE_H */

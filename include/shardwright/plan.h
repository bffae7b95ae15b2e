/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: what one rank writes or reads, as verified bytes (FlatBuffers, identifier SHWP) that a
 * host may move between ranks, store, print and check. */
#ifndef SHARDWRIGHT_PLAN_H
#define SHARDWRIGHT_PLAN_H

#include "base.h"
#include "buffer.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* What a plan buffer holds: what one rank describes; the list of what one rank writes; what one
 * rank reads; what a rank has written; the merged plan of all ranks; what all ranks of one
 * description hold; what one rank adds to its description; which stored blocks one rank wants; how
 * they come to it from the ranks that read them.
 * Since: 0.1 unstable */
enum {
  SHW_PLAN_LOCAL_SAVE = 1,
  SHW_PLAN_WRITE_LIST = 2,
  SHW_PLAN_LOAD = 3,
  SHW_PLAN_WRITE_RESULT = 4,
  SHW_PLAN_MERGED_SAVE = 5,
  SHW_PLAN_DESCRIPTION = 6,
  SHW_PLAN_LOCAL_PART = 7,
  SHW_PLAN_WANT_LIST = 8,
  SHW_PLAN_EXCHANGE = 9
};

/* A plan that passed all checks. Immutable.
 * Since: 0.1 unstable */
typedef struct shw_plan shw_plan;

/* One item of a write list or a load plan. `entry` is the number of the tensor (or object, flag
 * SHW_PLAN_ITEM_OBJECT) in the rank's state, `piece` the number of its box. Write lists:
 * `byte_size` is what is written; where is the format's business. Load plans: `chunk` is the number
 * of the stored chunk or object that the bytes come from.
 * Since: 0.1 unstable */
typedef struct shw_plan_item {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t entry;
  uint32_t piece;
  uint64_t chunk;
  uint64_t byte_size;
} shw_plan_item;

/* Flag of shw_plan_item: the entry is a byte object.
 * Since: 0.1 unstable */
#define SHW_PLAN_ITEM_OBJECT 1

/* Byte size of the oldest published shw_plan_item.
 * Since: 0.1 unstable */
#define SHW_PLAN_ITEM_SIZE_V1 32

#define SHW_PLAN_ITEM_INIT {sizeof(shw_plan_item), 0, 0, 0, 0, 0}

/* Fills an item with zeros and its size, as SHW_PLAN_ITEM_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_plan_item_init(shw_plan_item* item, uint32_t struct_size) SHW_NOEXCEPT;

/* Checks a plan buffer of any kind in all respects; the first finding is the error.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, DATA_LOSS, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_plan_validate(const void* SHW_NULLABLE data, uint64_t size,
                                                  shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Lists all findings about a plan buffer, one sentence per part of `out`; no part = valid.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_plan_findings(const void* SHW_NULLABLE data, uint64_t size,
                                                  shw_buffer** out,
                                                  shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes a plan from bytes that another rank or run has made; they are checked and copied.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, DATA_LOSS, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_plan_create(const void* SHW_NULLABLE data, uint64_t size,
                                                shw_plan** out,
                                                shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Kind of the plan: one of the SHW_PLAN_ numbers; 0 for NULL.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API int32_t shw_plan_kind(const shw_plan* plan) SHW_NOEXCEPT;

/* Rank that the plan belongs to; 0 for a merged plan.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API int32_t shw_plan_rank(const shw_plan* plan) SHW_NOEXCEPT;

/* First byte of the plan buffer; borrowed until the plan is released.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const void* shw_plan_data(const shw_plan* plan) SHW_NOEXCEPT;

/* Number of bytes of the plan buffer.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_plan_size(const shw_plan* plan) SHW_NOEXCEPT;

/* Number of items of a write list or load plan (tensor reads, then objects); 0 for other kinds.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_plan_item_count(const shw_plan* plan) SHW_NOEXCEPT;

/* Writes item `index`; `out->struct_size` must be set.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_plan_item_at(const shw_plan* plan, uint64_t index,
                                                 shw_plan_item* out,
                                                 shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* The plan as JSON text with "schema": 1, with at most `item_limit` items of each list.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_plan_json(const shw_plan* plan, uint64_t item_limit,
                                              shw_buffer** out,
                                              shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the plan. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: plan
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_plan_release(shw_plan* SHW_NULLABLE plan) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_PLAN_H */

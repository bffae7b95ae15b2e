/* SPDX-License-Identifier: Apache-2.0
 *
 * Global plans: who writes what in a whole job, by arithmetic on layouts. Each rank describes its
 * entries; ranks that differ only by their place in a mesh make equal descriptions. They exchange
 * the digests of these (16 bytes each), one description per distinct digest, and parts: what only
 * one rank knows, boxes without a layout and sizes of rank_local objects, mostly nothing. Whoever
 * has these makes the same plan, equal in every byte to what a save planner makes of explicit local
 * plans, in time and memory that do not grow with ranks x tensors. */
#ifndef SHARDWRIGHT_GLOBAL_PLAN_H
#define SHARDWRIGHT_GLOBAL_PLAN_H

#include "base.h"
#include "buffer.h"
#include "layout.h"
#include "planning.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Who writes what in a whole job. Immutable.
 * Since: 0.1 unstable */
typedef struct shw_global_plan shw_global_plan;

/* Describes what `options->rank` of `options->world_size` holds. `layouts` has one layout per
 * entry, NULL where the boxes of `entries` count; `layouts` NULL = no entry has one. An entry with
 * a layout lists no boxes and is of kind SHARDED unless its kind says otherwise or no axis of the
 * layout cuts. `numbers`, `order`, `secondary` and `attributes` are NULL. Parts of `out`: 0 the
 * description (a plan buffer), 1 its digest, 2 this rank's part (a plan buffer), empty when there
 * is none.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE (a box leaves its tensor), ALREADY_EXISTS (a name twice),
 *   RESOURCE_EXHAUSTED, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_global_plan_describe(const shw_describe_options* options, const shw_entry_batch* entries,
                         const shw_layout* const* SHW_NULLABLE layouts, shw_buffer** out,
                         shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Ranks that send their description: the lowest of each distinct digest, ascending by first use
 * (int32, the one part of `out`). `digests` has 16 bytes per rank.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_global_plan_representatives(const void* digests, uint64_t rank_count, shw_buffer** out,
                                shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes the plan of all ranks. `descriptions` are those of the representatives in their order (a
 * blob cut by description_count + 1 offsets), `parts` those of the ranks that have one, in any
 * order (a blob cut by part_count + 1 offsets; NULL with part_count 0). Of `options`, `owner` is
 * any but ALL, and `cover` FULL.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT (ranks are named), DATA_LOSS, RESOURCE_EXHAUSTED, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_global_plan_create(
    const shw_merge_options* SHW_NULLABLE options, const void* digests, uint64_t rank_count,
    const void* descriptions, const uint64_t* description_offsets, uint64_t description_count,
    const void* SHW_NULLABLE parts, const uint64_t* SHW_NULLABLE part_offsets, uint64_t part_count,
    shw_global_plan** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* What rank `rank` writes, as a plan buffer of kind WRITE_LIST. An entry is counted among the
 * tensors or among the objects of the rank's entries. `generation` is 32 hex digits; `plan_digest`
 * has the 16 bytes that the list carries, NULL = those of shw_global_plan_digest.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, RESOURCE_EXHAUSTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_global_plan_write_list(const shw_global_plan* plan, int32_t rank, const char* generation,
                           const void* SHW_NULLABLE plan_digest, shw_buffer** out,
                           shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Bytes that each rank writes, without padding (uint64, the one part of `out`).
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_global_plan_rank_bytes(
    const shw_global_plan* plan, shw_buffer** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Rank that writes each chunk of a tensor that is not rank_local, in the order of the explicit
 * catalog (int32, the one part of `out`).
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_global_plan_owners(const shw_global_plan* plan,
                                                       const char* name, uint64_t name_size,
                                                       shw_buffer** out,
                                                       shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Counts of the plan as JSON text with "schema": 1: ranks, descriptions, tensors, items, chunks,
 * objects, files, bytes, most_bytes (of the rank that writes most).
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_global_plan_json(const shw_global_plan* plan, shw_buffer** out,
                                                     shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Digest of what the plan is made of, 16 bytes: equal on all ranks that made the same plan.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_global_plan_digest(const shw_global_plan* plan,
                                                       shw_buffer** out,
                                                       shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* The explicit plan: part 0 of `out` is the merged plan, part 1 + r the write list of rank r, each
 * with the digest of the explicit catalog. Costs what the explicit plan costs.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, RESOURCE_EXHAUSTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_global_plan_expand(const shw_global_plan* plan,
                                                       const char* generation, shw_buffer** out,
                                                       shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the plan. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: plan
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_global_plan_release(shw_global_plan* SHW_NULLABLE plan) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_GLOBAL_PLAN_H */

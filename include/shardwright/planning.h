/* SPDX-License-Identifier: Apache-2.0
 *
 * Planning by descriptions alone: no memory, no storage, no checkpoint. A host describes what each
 * rank holds or wants in flat arrays, the descriptions travel as plan buffers, and one rank merges
 * them. Adapters that speak the words of another framework stand on this; shw_save_planner and
 * shw_load_planner are the same engine with a state and a checkpoint behind it. */
#ifndef SHARDWRIGHT_PLANNING_H
#define SHARDWRIGHT_PLANNING_H

#include "base.h"
#include "buffer.h"
#include "plan.h"
#include "save.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Entries in flat arrays: tensors with boxes, and byte objects. Each field has a comment of its
 * own; those that may be NULL say what NULL means. Texts and bytes are blobs that count + 1
 * ascending offsets cut, the first 0. Boxes are numbered through all entries in their order; a box
 * of a tensor has ndim values in `box_offsets` and in `box_sizes`, back to back (one of no
 * dimensions has none), a byte object has one box of no dimensions. Names are unique; only merged
 * plans list a rank_local name once for each rank that has one.
 * Since: 0.1 unstable */
typedef struct shw_entry_batch {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t count;
  /* UTF-8 names. */
  const char* names;
  const uint64_t* name_offsets;
  /* SHW_BOOL to SHW_UINT4; 0 = a byte object. */
  const int32_t* dtypes;
  /* SHW_KIND_; NULL = AUTO: replicated for objects and for one box that is the whole tensor. */
  const int32_t* kinds;
  /* Global extents of the tensors. */
  const int64_t* shapes;
  const uint64_t* shape_offsets;
  /* Entry i holds boxes box_ranges[i] to box_ranges[i+1]; NULL = each tensor as a whole. */
  const uint64_t* box_ranges;
  const int64_t* box_offsets;
  const int64_t* box_sizes;
  /* One per box, below 2^32 - 1. Local plans: number of the piece in its entry; merged plans: rank
   * that writes. NULL = 0, 1, 2, ... in each entry of a local plan, 0 in merged ones. */
  const uint64_t* numbers;
  /* All boxes in the order in which the host lists them; NULL = as they stand. */
  const uint64_t* order;
  /* One byte per box, 1 = not a main replica, only wanted by others: of preset MEGATRON, owner
   * EXACT, where a box comes after all others when every holder says so. NULL = 0. */
  const shw_bool* secondary;
  /* One per entry: bytes of an object, up to 2^40 (a native save takes up to 64 MiB); 0 = unknown,
   * and for tensors. Holders that know the size must agree. NULL = 0. */
  const uint64_t* object_sizes;
  /* Nested paths, as in a state; NULL = flat. */
  const char* paths;
  const uint64_t* path_offsets;
  /* Bytes of the host's own: the merged plan has those of the first rank that lists the entry.
   * NULL = none. */
  const char* attributes;
  const uint64_t* attribute_offsets;
  /* 16 bytes per entry, a digest of its content that holders must agree on (of a sharded tensor,
   * those that hold the same boxes); 16 zeros = not compared. NULL = none is. */
  const uint8_t* digests;
} shw_entry_batch;

/* How descriptions become a plan. `kind` SHW_PLAN_LOCAL_SAVE (or 0): what `rank` of `world_size`
 * holds; world_size 0 = not known, such a plan is merged at any place and gets its place for its
 * rank. SHW_PLAN_MERGED_SAVE: what is stored, each box one chunk, rank and world_size 0.
 * `kind_globs` is cut by `kind_offsets` (kind_count + 1), the first glob that matches a name gives
 * its SHW_KIND_. `agreement` is UTF-8 text of `agreement_size` bytes, lines "option=value" that all
 * ranks must have alike.
 * Since: 0.1 unstable */
typedef struct shw_describe_options {
  uint32_t struct_size;
  uint32_t flags;
  int32_t kind;
  int32_t rank;
  int32_t world_size;
  int32_t reserved0;
  const char* kind_globs;
  const uint64_t* kind_offsets;
  const int32_t* kind_values;
  uint64_t kind_count;
  const char* agreement;
  uint64_t agreement_size;
} shw_describe_options;

/* What is proved about the boxes of each tensor: that they cover it exactly once; that no two share
 * an element; nothing but that each lies inside its tensor, which is always checked.
 * Since: 0.1 unstable */
enum { SHW_COVER_FULL = 0, SHW_COVER_DISJOINT = 1, SHW_COVER_OFF = 2 };

/* How local plans are merged. `owner` SHW_OWNER_, `preset` SHW_PRESET_, `cover` SHW_COVER_ and
 * `verify_replicas` SHW_VERIFY_REPLICAS_ (OFF: sizes and digests are not compared).
 * Since: 0.1 unstable */
typedef struct shw_merge_options {
  uint32_t struct_size;
  uint32_t flags;
  int32_t owner;
  int32_t preset;
  int32_t cover;
  int32_t verify_replicas;
  uint64_t reserved0;
} shw_merge_options;

/* Order of matches, entries always in their order: wanted boxes, for each the chunks that share an
 * element with it by number; or the sweep of torch 2.15 along the dimension that reaches farthest:
 * wanted boxes by their begin, for each the chunks by their end, then their number. There a box
 * without elements that lies strictly inside another is a match too, of size 0.
 * Since: 0.1 unstable */
enum { SHW_MATCH_BY_WANTED = 0, SHW_MATCH_BY_SWEEP = 1 };

/* How wanted boxes are matched with chunks. `order` SHW_MATCH_BY_. `cover`: FULL = each wanted box
 * is filled exactly once, DISJOINT = at most once, OFF = not looked at. `missing` 1 = names that
 * are not stored have no matches, 0 = they are an error. Flag SHW_MATCH_FIRST_REPLICA: of chunks
 * with equal boxes only the first counts. Flag SHW_MATCH_RANK: `rank` wants, so rank_local entries
 * of that rank are found, before shared ones of their name; without it only shared ones are, and a
 * name that only single ranks store is INVALID_ARGUMENT.
 * Since: 0.1 unstable */
typedef struct shw_match_options {
  uint32_t struct_size;
  uint32_t flags;
  int32_t order;
  int32_t cover;
  int32_t missing;
  int32_t rank;
  uint64_t reserved1;
} shw_match_options;

/* Flags of shw_match_options.
 * Since: 0.1 unstable */
#define SHW_MATCH_FIRST_REPLICA 1
#define SHW_MATCH_RANK 2

/* What shw_plan_merge says of a box that its rank does not write.
 * Since: 0.1 unstable */
#define SHW_NOT_KEPT 4294967295

/* Byte sizes of the oldest published structs.
 * Since: 0.1 unstable */
#define SHW_ENTRY_BATCH_SIZE_V1 160
#define SHW_DESCRIBE_OPTIONS_SIZE_V1 72
#define SHW_MERGE_OPTIONS_SIZE_V1 32
#define SHW_MATCH_OPTIONS_SIZE_V1 32

#define SHW_ENTRY_BATCH_INIT \
  {sizeof(shw_entry_batch), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
#define SHW_DESCRIBE_OPTIONS_INIT {sizeof(shw_describe_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
#define SHW_MERGE_OPTIONS_INIT {sizeof(shw_merge_options), 0, 0, 0, 0, 0, 0}
#define SHW_MATCH_OPTIONS_INIT {sizeof(shw_match_options), 0, 0, 0, 0, 0, 0}

/* Fills a batch with zeros and its size, as SHW_ENTRY_BATCH_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_entry_batch_init(shw_entry_batch* batch, uint32_t struct_size) SHW_NOEXCEPT;

/* Fills options with zeros and their size, as SHW_DESCRIBE_OPTIONS_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_describe_options_init(shw_describe_options* options,
                                       uint32_t struct_size) SHW_NOEXCEPT;

/* Fills options with zeros and their size, as SHW_MERGE_OPTIONS_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_merge_options_init(shw_merge_options* options, uint32_t struct_size) SHW_NOEXCEPT;

/* Fills options with zeros and their size, as SHW_MATCH_OPTIONS_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_match_options_init(shw_match_options* options, uint32_t struct_size) SHW_NOEXCEPT;

/* Makes a plan buffer, the one part of `out`, of what the entries describe. Equal entries give
 * equal bytes.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE (a box leaves its tensor), ALREADY_EXISTS (a name twice),
 *   RESOURCE_EXHAUSTED, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_plan_describe(const shw_describe_options* options,
                                                  const shw_entry_batch* entries, shw_buffer** out,
                                                  shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* The entries of a local or merged plan as they were described; `out->struct_size` must be
 * set. Arrays that have one value per entry or box are never NULL, except `order`, `secondary`,
 * `attributes` and `digests` where they say nothing. All are borrowed until the plan is released.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_plan_entries(const shw_plan* plan, shw_entry_batch* out,
                                                 shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Merges the local plans of all ranks (a blob cut by plan_count + 1 offsets, rank order). Part 0 of
 * `out` is the merged plan. Part 1 + r says what rank r keeps: one uint32 for each box of its plan,
 * as shw_plan_entries lists them, the number of its chunk in its tensor (0 for an object), or
 * SHW_NOT_KEPT where another rank writes it. How presets and owners choose and number:
 * docs/planning.md.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT (both ranks are named), DATA_LOSS, RESOURCE_EXHAUSTED, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_plan_merge(const shw_merge_options* SHW_NULLABLE options,
                                               const void* plans, const uint64_t* plan_offsets,
                                               uint64_t plan_count, shw_buffer** out,
                                               shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* shw_plan_merge of plans that lie apart, as a transport left them: plan r is the `plan_sizes[r]`
 * bytes at `plans[r]`. Those at a multiple of 8 are read in place.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: as shw_plan_merge
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_plan_merge_buffers(const shw_merge_options* SHW_NULLABLE options, const void* const* plans,
                       const uint64_t* plan_sizes, uint64_t plan_count, shw_buffer** out,
                       shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Intersects wanted boxes with the chunks of a merged plan, by name. Parts of `out`: 0 numbers of
 * wanted boxes (u64), 1 numbers of chunks in their tensor (u64), 2 offsets inside the wanted box, 3
 * offsets inside the chunk, 4 sizes (i64, ndim values per match, back to back in the order of the
 * matches), 5 first match of each entry and the end (u64, count + 1). A stored object is one match
 * without dimensions.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND, OUT_OF_RANGE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_plan_match(const shw_match_options* SHW_NULLABLE options,
                                               const shw_plan* stored,
                                               const shw_entry_batch* wanted, shw_buffer** out,
                                               shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Digest of what a local or merged plan describes, 16 bytes: equal for equal entries in equal
 * order on equal ranks, whatever the content digests of the entries are.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_plan_digest(const shw_plan* plan, shw_buffer** out,
                                                shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* XXH3-128 of `size` bytes in canonical byte order, 16 bytes, as `digests` of entries want it.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_content_digest(const void* SHW_NULLABLE data, uint64_t size,
                                                   shw_buffer** out,
                                                   shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_PLANNING_H */

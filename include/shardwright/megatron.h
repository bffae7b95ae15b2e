/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "megatron": how Megatron Core cuts tensors into grids and flat ranges, and how it
 * chooses who writes a replica. Adapters of Megatron stand on it; layouts and plans say all of this
 * for everyone else. Its functions are no symbols of the library: shw_get_extension gives the
 * table. */
#ifndef SHARDWRIGHT_MEGATRON_H
#define SHARDWRIGHT_MEGATRON_H

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Name and version of the extension.
 * Since: 0.1 unstable */
#define SHW_MEGATRON_NAME "megatron"
#define SHW_MEGATRON_VERSION 1

/* One shard of a tensor as Megatron Core describes it. The local shape (`local_ndim` extents) lacks
 * `prepended` leading axes of the global tensor, on which the shard has extent 1. `global_shape`,
 * `offsets` (in elements) and `fragments` have prepended + local_ndim values; `fragments` are equal
 * parts per axis, NULL = irregular grid. With SHW_GRID_FLAT the rank holds `flat_size` row-major
 * elements of the local shape from `flat_begin` on.
 * Since: 0.1 unstable */
typedef struct shw_grid_shard {
  uint32_t struct_size;
  uint32_t flags;
  int32_t local_ndim;
  int32_t prepended;
  const int64_t* local_shape;
  const int64_t* global_shape;
  const int64_t* offsets;
  const int64_t* fragments;
  int64_t flat_begin;
  int64_t flat_size;
} shw_grid_shard;

/* Flags of shw_grid_shard: the shard is a flat range; fragments times local shape need not be the
 * global shape (allow_shape_mismatch).
 * Since: 0.1 unstable */
#define SHW_GRID_FLAT 1
#define SHW_GRID_SHAPE_MAY_DIFFER 2

/* Byte size of the oldest published shw_grid_shard.
 * Since: 0.1 unstable */
#define SHW_GRID_SHARD_SIZE_V1 64

#define SHW_GRID_SHARD_INIT {sizeof(shw_grid_shard), 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Fills a shard with zeros and its size, as SHW_GRID_SHARD_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_grid_shard_init_fn)(shw_grid_shard* shard, uint32_t struct_size);

/* The regular shard at places (axis, index, count), three values each: a shard of
 * `shard->local_shape` is part `index` of `count` on that axis. Writes global shape, offsets and
 * fragments, each prepended + local_ndim values; other fields of `shard` are ignored. The last
 * place of an axis counts.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_grid_place_fn)(
    const shw_grid_shard* shard, const int64_t* SHW_NULLABLE places, uint64_t count,
    int64_t* SHW_NULLABLE global_shape, int64_t* SHW_NULLABLE offsets,
    int64_t* SHW_NULLABLE fragments, shw_error** SHW_NULLABLE err);

/* Checks the shard and writes what it holds: one box, or those of its flat range, as
 * shw_layout_boxes writes them; `local_offsets` (NULL = not wanted) has room for one value per box
 * that fits into `capacity`.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, BUFFER_TOO_SMALL
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_grid_boxes_fn)(const shw_grid_shard* shard,
                                                    int64_t* SHW_NULLABLE boxes, uint64_t capacity,
                                                    uint64_t* size,
                                                    int64_t* SHW_NULLABLE local_offsets,
                                                    shw_error** SHW_NULLABLE err);

/* How Megatron Core up to 0.14 stores a flat range of a regular grid: an entry with one axis per
 * part number and one for the elements of a part. Writes shape, offsets and sizes of prepended +
 * local_ndim + 1 values each.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_grid_flat_entry_fn)(const shw_grid_shard* shard,
                                                         int64_t* shape, int64_t* offsets,
                                                         int64_t* sizes,
                                                         shw_error** SHW_NULLABLE err);

/* The boxes of the original tensor that one chunk of such an entry holds. `entry` has ndim + 1
 * extents, `chunk` ndim + 1 offsets, then as many sizes; the rest as in shw_grid_boxes.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, BUFFER_TOO_SMALL
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_grid_flat_boxes_fn)(
    const int64_t* SHW_NULLABLE shape, int32_t ndim, const int64_t* entry, const int64_t* chunk,
    int64_t* SHW_NULLABLE boxes, uint64_t capacity, uint64_t* size,
    int64_t* SHW_NULLABLE local_offsets, shw_error** SHW_NULLABLE err);

/* Which of `stored` equal parts of an axis meet part `index` of `wanted` equal parts: `count` of
 * them from `begin` on.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_grid_overlap_fn)(int64_t stored, int64_t wanted, int64_t index,
                                                      int64_t* begin, int64_t* count,
                                                      shw_error** SHW_NULLABLE err);

/* Chooses who writes each of `count` shards, as preset MEGATRON with owner EXACT does. Shard i has
 * `weights[i]` bytes and the holders of set sets[i]; set s is holders[set_offsets[s]] to
 * holders[set_offsets[s+1]], ascending. Order of choice: those that are not `secondary` (NULL =
 * none) first, fewer holders, larger weight, lower number; each goes to its holder with the least
 * bytes so far, ties to the lowest rank. `owners` has room for `count` ranks.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_plan_owners_fn)(
    uint64_t count, const uint64_t* SHW_NULLABLE weights, const uint32_t* SHW_NULLABLE sets,
    const shw_bool* SHW_NULLABLE secondary, uint64_t set_count,
    const uint64_t* SHW_NULLABLE set_offsets, const int32_t* SHW_NULLABLE holders,
    int32_t rank_count, int32_t* SHW_NULLABLE owners, shw_error** SHW_NULLABLE err);

/* The functions of the extension; none is NULL. `struct_size` says how many slots there are.
 * Since: 0.1 unstable */
typedef struct shw_megatron_api {
  uint32_t struct_size;
  uint32_t version;
  shw_grid_shard_init_fn grid_shard_init;
  shw_grid_place_fn grid_place;
  shw_grid_boxes_fn grid_boxes;
  shw_grid_flat_entry_fn grid_flat_entry;
  shw_grid_flat_boxes_fn grid_flat_boxes;
  shw_grid_overlap_fn grid_overlap;
  shw_plan_owners_fn plan_owners;
} shw_megatron_api;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_MEGATRON_H */

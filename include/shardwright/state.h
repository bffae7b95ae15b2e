/* SPDX-License-Identifier: Apache-2.0
 *
 * State: the ordered entries (tensor shards and byte objects) that one rank holds. Tensors are
 * borrowed: their memory must live until the state is released or the last call on it has ended,
 * whichever is later. Names, shapes and objects are copied.
 *
 * A nested path is a compact JSON array: text keys are strings, integer keys of mappings integers,
 * positions in lists arrays of one integer, as in ["optim",0,[1]]. The name of the entry is the
 * parts joined with ".". An empty path means that the entry is flat.
 *
 * A name has at most 65,535 bytes of UTF-8, a nested path 1 MiB, a byte object 64 MiB; an entry
 * beyond that is refused when it is added, with INVALID_ARGUMENT or, for objects, with
 * RESOURCE_EXHAUSTED. */
#ifndef SHARDWRIGHT_STATE_H
#define SHARDWRIGHT_STATE_H

#include "base.h"
#include "buffer.h"
#include "layout.h"
#include "tensor.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Who holds an entry. AUTO: replicated for whole tensors and objects, sharded for tensors with
 * boxes or a layout.
 * Since: 0.1 unstable */
enum { SHW_KIND_AUTO = 0, SHW_KIND_REPLICATED = 1, SHW_KIND_SHARDED = 2, SHW_KIND_RANK_LOCAL = 3 };

/* Entries of one rank.
 * Since: 0.1 unstable */
typedef struct shw_state shw_state;

/* Many tensors in flat arrays. Needed: `count`, `names` cut by `name_offsets` (count + 1 values)
 * and `tensors` (NULL in the DLPack calls). `global_shapes`, cut by offsets, NULL = tensors are
 * whole. Boxes: entry i holds boxes box_ranges[i] to box_ranges[i+1]; a box has ndim values in
 * `box_offsets` and in `box_sizes`, back to back, and starts at element local_offsets[box] (NULL =
 * 0) of a contiguous local tensor; a single box of the local shape may be strided. Layouts:
 * layout_indices[i] = 0 for none, k for layouts[k-1] (NULL = layouts[0] for all); an entry that has
 * one and lists no box holds what it gives to global rank `rank`, an entry that lists boxes, too,
 * is refused when they differ. The state keeps layouts alive, and saves are planned by them.
 * `paths` cut by `path_offsets` and `kinds` (SHW_KIND_) may be NULL.
 * Since: 0.1 unstable */
typedef struct shw_tensor_batch {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t count;
  const char* names;
  const uint64_t* name_offsets;
  const shw_tensor* tensors;
  const int64_t* global_shapes;
  const uint64_t* global_shape_offsets;
  const uint64_t* box_ranges;
  const int64_t* box_offsets;
  const int64_t* box_sizes;
  const int64_t* local_offsets;
  const shw_layout* const* layouts;
  const uint32_t* layout_indices;
  uint64_t layout_count;
  const char* paths;
  const uint64_t* path_offsets;
  const int32_t* kinds;
  int32_t rank;
  int32_t reserved0;
  /* Grids, as Megatron Core describes shards: entry i has the values grid_offsets[i] to
   * grid_offsets[i+1] (NULL = no grids; no value = none) of both columns: into how many equal parts
   * each axis of the whole tensor is cut, and the part that the local tensor is. Values beyond its
   * ndim come first and are axes that it lacks and has extent 1 on. Global shape and box follow;
   * the batch lists neither shapes, boxes nor layouts. `grid_indices` NULL: the batch lists them,
   * and fragments, one per extent of the whole tensor (0 = no regular cut), say of which parts the
   * boxes are cut once more, as the flat ranges of a distributed optimizer are; mappings ask. */
  const int64_t* grid_fragments;
  const int64_t* grid_indices;
  const uint64_t* grid_offsets;
  /* 0 for what this rank saves, other values for what another rank saves and this one only loads;
   * NULL = 0. */
  const int32_t* replica_ids;
} shw_tensor_batch;

/* Many byte objects in flat arrays: names, bytes, content types ("application/json",
 * "application/octet-stream", ...; NULL = octet-stream), nested paths and kinds (NULL = none).
 * Each blob is cut by count + 1 ascending offsets. Everything is copied. Grids: object i is the
 * cell `grid_indices` of a grid of `grid_shapes`, values grid_offsets[i] to grid_offsets[i+1] of
 * both, and its name in the state is that of shw_object_key (no value or NULL: the name as it is).
 * `replica_ids` as in shw_tensor_batch.
 * Since: 0.1 unstable */
typedef struct shw_object_batch {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t count;
  const char* names;
  const uint64_t* name_offsets;
  const void* data;
  const uint64_t* data_offsets;
  const char* content_types;
  const uint64_t* content_type_offsets;
  const char* paths;
  const uint64_t* path_offsets;
  const int32_t* kinds;
  const int64_t* grid_shapes;
  const int64_t* grid_indices;
  const uint64_t* grid_offsets;
  const int32_t* replica_ids;
} shw_object_batch;

/* Byte sizes of the oldest published batches.
 * Since: 0.1 unstable */
#define SHW_TENSOR_BATCH_SIZE_V1 144
#define SHW_OBJECT_BATCH_SIZE_V1 88

#define SHW_TENSOR_BATCH_INIT \
  {sizeof(shw_tensor_batch), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
#define SHW_OBJECT_BATCH_INIT \
  {sizeof(shw_object_batch), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Fills a batch with zeros and its size, as SHW_TENSOR_BATCH_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_tensor_batch_init(shw_tensor_batch* batch, uint32_t struct_size) SHW_NOEXCEPT;

/* Fills a batch with zeros and its size, as SHW_OBJECT_BATCH_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_object_batch_init(shw_object_batch* batch, uint32_t struct_size) SHW_NOEXCEPT;

/* Makes an empty state.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_state_create(shw_state** out,
                                                 shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Sets memory aside for that many more tensors whose names have `name_bytes` bytes in all, so that
 * a host that adds them in pieces pays about as much as for one batch. Both are hints: fewer or
 * more may follow.
 * Threads: exclusive(state)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, RESOURCE_EXHAUSTED (more than a state may hold, or no memory)
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_state_reserve(shw_state* state, uint64_t tensors,
                                                  uint64_t name_bytes,
                                                  shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Adds all tensors of the batch or none. ALREADY_EXISTS names both paths of a doubled name.
 * Threads: exclusive(state)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE (a box leaves its tensor), ALREADY_EXISTS, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_state_add_tensors(shw_state* state,
                                                      const shw_tensor_batch* batch,
                                                      shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Adds one tensor of `name_size` bytes of name. `global_shape` and `offsets` NULL = it is whole;
 * else it is the box of its own shape that begins at `offsets` of a tensor of `global_shape`, and
 * both have `tensor->ndim` values. `kind` SHW_KIND_. Many tensors are added faster in one batch.
 * Threads: exclusive(state)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE (the box leaves its tensor), ALREADY_EXISTS, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_state_add_tensor(shw_state* state, const char* name,
                                                     uint64_t name_size, const shw_tensor* tensor,
                                                     const int64_t* SHW_NULLABLE global_shape,
                                                     const int64_t* SHW_NULLABLE offsets,
                                                     int32_t kind,
                                                     shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* As shw_state_add_tensors with versioned DLPack tensors, `batch->count` of them, in place of
 * `batch->tensors`. On success all are consumed: their deleters run once when the state ends.
 * Threads: exclusive(state)
 * Blocks: no
 * Owns: managed
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE (a box leaves its tensor), ALREADY_EXISTS, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_state_add_dlpack(
    shw_state* state, const shw_tensor_batch* batch,
    struct DLManagedTensorVersioned* const* managed, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* As shw_state_add_dlpack with legacy DLPack tensors.
 * Threads: exclusive(state)
 * Blocks: no
 * Owns: managed
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE (a box leaves its tensor), ALREADY_EXISTS, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_state_add_dlpack_legacy(
    shw_state* state, const shw_tensor_batch* batch, struct DLManagedTensor* const* managed,
    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Adds all objects of the batch or none. A load stores the bytes that it found in the entry.
 * Threads: exclusive(state)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, ALREADY_EXISTS
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_state_add_objects(shw_state* state,
                                                      const shw_object_batch* batch,
                                                      shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Adds one byte object: a copy of `size` bytes. `content_type` NULL = "application/octet-stream",
 * `kind` SHW_KIND_.
 * Threads: exclusive(state)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, ALREADY_EXISTS
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_state_add_object(shw_state* state, const char* name,
                                                     uint64_t name_size,
                                                     const char* SHW_NULLABLE content_type,
                                                     const void* SHW_NULLABLE data, uint64_t size,
                                                     int32_t kind,
                                                     shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes the name of an object that is the cell `cell` of a grid of `shape`, both of `ndim` (1 to
 * 64) values: the key, "/shard_", the cell joined by ".", "_", the shape joined by ".", as in
 * "key/shard_0.3_1.8". `out`: the text as a buffer of one part.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT (a cell outside the grid)
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_object_key(const char* key, uint64_t key_size,
                                               const int64_t* cell, const int64_t* shape,
                                               int32_t ndim, shw_buffer** out,
                                               shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Takes such a name apart: the key is its first `key_size` bytes (the last "/shard_" counts, so any
 * key comes back), and `values` receives the cell, then the shape, half of `size` values each;
 * BUFFER_TOO_SMALL, nothing else written, when `size` is above `capacity`. The last extent is -1
 * where older names leave it out.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT (no such name), BUFFER_TOO_SMALL
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_object_key_parse(const char* name, uint64_t name_size,
                                                     int64_t* SHW_NULLABLE values,
                                                     uint64_t capacity, uint64_t* size,
                                                     uint64_t* key_size,
                                                     shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Number of tensors; they are numbered from 0 in the order in which they were added.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_state_tensor_count(const shw_state* state) SHW_NOEXCEPT;

/* Number of objects, numbered from 0 like tensors.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_state_object_count(const shw_state* state) SHW_NOEXCEPT;

/* Name of a tensor; "" when there is none. Borrowed until the state changes or is released.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_state_tensor_name(const shw_state* state, uint64_t index,
                                          uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Nested path of a tensor; "" when it is flat. Borrowed until the state changes or is released.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_state_tensor_path(const shw_state* state, uint64_t index,
                                          uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Describes the local memory of a tensor; `out` borrows until the state changes or is released.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, FAILED_PRECONDITION (a mapping gave it several memories)
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_state_tensor(const shw_state* state, uint64_t index,
                                                 shw_tensor* out,
                                                 shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Writes the shape of the whole tensor; `size` receives the number of extents. BUFFER_TOO_SMALL,
 * nothing else written, when it is above `capacity`.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, BUFFER_TOO_SMALL
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_state_global_shape(const shw_state* state, uint64_t index,
                                                       int64_t* SHW_NULLABLE extents,
                                                       uint64_t capacity, uint64_t* size,
                                                       shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Writes the boxes of a tensor that the state holds: for each box its offsets, then its sizes, as
 * many values as the whole tensor has extents each. `size` and `capacity` count values, as in
 * shw_state_global_shape.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, BUFFER_TOO_SMALL
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_state_boxes(const shw_state* state, uint64_t index,
                                                int64_t* SHW_NULLABLE boxes, uint64_t capacity,
                                                uint64_t* size,
                                                shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Name of an object; "" when there is none. Borrowed until the state changes or is released.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_state_object_name(const shw_state* state, uint64_t index,
                                          uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Nested path of an object; "" when it is flat. Borrowed until the state changes or is released.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_state_object_path(const shw_state* state, uint64_t index,
                                          uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Content type of an object. Borrowed until the state changes or is released.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_state_object_content_type(const shw_state* state, uint64_t index,
                                                  uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Bytes of an object, NULL when there is none. Borrowed until the state changes, a load into it
 * ends, or it is released.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const void* shw_state_object_data(const shw_state* state, uint64_t index,
                                          uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Finds a tensor by name; `out` receives its number.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, NOT_FOUND
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_state_find_tensor(const shw_state* state, const char* name,
                                                      uint64_t name_size, uint64_t* out,
                                                      shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Finds an object by name; `out` receives its number.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, NOT_FOUND
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_state_find_object(const shw_state* state, const char* name,
                                                      uint64_t name_size, uint64_t* out,
                                                      shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the state; planners and jobs that use it keep it alive. DLPack deleters run here, or in
 * the release of the last user. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: state
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_state_release(shw_state* SHW_NULLABLE state) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_STATE_H */

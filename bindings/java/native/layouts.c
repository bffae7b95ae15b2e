/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts and shards of grids. Pieces go to Java as one array: their number, for each box ndim
 * offsets and ndim sizes, then the local offset of each. */
#include <stdlib.h>

#include "bindings/java/native/structs.h"
#include "bindings/native/megatron.h"

#define RANK_MAX 64

static jlongArray failed(JNIEnv* env, shw_status status, shw_error* err) {
  shw_java_throw(env, status, err);
  return NULL;
}

static int too_many(JNIEnv* env) {
  shw_error* err = NULL;
  const shw_status status = shw_error_create(
      SHW_INVALID_ARGUMENT, "a shape has at most 64 dimensions", 33, NULL, 0, NULL, &err);
  shw_java_throw(env, status, err);
  return -1;
}

/* Copies an array of at most `capacity` numbers; -1 with an exception. */
static jsize read_longs(JNIEnv* env, jlongArray array, jlong* values, jsize capacity) {
  const jsize count = (*env)->GetArrayLength(env, array);
  if (count > capacity) return too_many(env);
  (*env)->GetLongArrayRegion(env, array, 0, count, values);
  return (*env)->ExceptionCheck(env) ? -1 : count;
}

/* A call that writes boxes and their local offsets where there is room, and says how many values
 * that takes. */
typedef struct boxes {
  int64_t* values;
  int64_t* local_offsets;
  uint64_t size;
} boxes;
typedef shw_status (*box_call)(const void* arguments, boxes* into, uint64_t capacity,
                               shw_error** err);

static jlongArray list_pieces(JNIEnv* env, box_call call, const void* arguments, jsize ndim,
                              uint64_t scalar_count) {
  boxes found = {NULL, NULL, 0};
  shw_error* err = NULL;
  shw_status status = call(arguments, &found, 0, &err);
  if (status != SHW_OK && status != SHW_BUFFER_TOO_SMALL) return failed(env, status, err);
  const uint64_t size = found.size;
  const uint64_t count = ndim == 0 ? scalar_count : size / (2 * (uint64_t)ndim);
  jlong* all = calloc(1 + size + count, sizeof *all);
  if (all == NULL) return failed(env, SHW_RESOURCE_EXHAUSTED, NULL);
  all[0] = (jlong)count;
  found.values = (int64_t*)all + 1;
  found.local_offsets = found.values + size;
  status = call(arguments, &found, size, &err);
  jlongArray array =
      status == SHW_OK ? shw_java_longs(env, all, 1 + size + count) : failed(env, status, err);
  free(all);
  return array;
}

/* ---- layouts ---- */

typedef struct question {
  const shw_layout* layout;
  int64_t shape[RANK_MAX];
  int32_t ndim;
  int32_t rank;
} question;

static int read_question(JNIEnv* env, jlong layout, jlongArray shape, jint rank, question* into) {
  into->layout = (const shw_layout*)(intptr_t)layout;
  into->ndim = read_longs(env, shape, (jlong*)into->shape, RANK_MAX);
  into->rank = rank;
  return into->ndim < 0 ? -1 : 0;
}

static shw_status layout_boxes(const void* arguments, boxes* into, uint64_t capacity,
                               shw_error** err) {
  const question* q = arguments;
  const shw_status status = shw_layout_boxes(q->layout, q->shape, q->ndim, q->rank, into->values,
                                             capacity, &into->size, err);
  if (status != SHW_OK || into->local_offsets == NULL) return status;
  uint64_t count = 0;
  return shw_layout_local_offsets(q->layout, q->shape, q->ndim, q->rank, into->local_offsets,
                                  q->ndim == 0 ? 1 : into->size / (2 * (uint64_t)q->ndim), &count,
                                  err);
}

NATIVE(jlongArray, layoutPieces)(JNIEnv* env, jclass type, jlong layout, jlongArray shape,
                                 jint rank) {
  (void)type;
  question q;
  if (read_question(env, layout, shape, rank, &q) < 0) return NULL;
  uint64_t count = 0;
  shw_error* err = NULL;
  const shw_status status = shw_layout_box_count(q.layout, q.shape, q.ndim, q.rank, &count, &err);
  if (status != SHW_OK) return failed(env, status, err);
  return list_pieces(env, layout_boxes, &q, q.ndim, count);
}

NATIVE(jlongArray, layoutLocalShape)(JNIEnv* env, jclass type, jlong layout, jlongArray shape,
                                     jint rank) {
  (void)type;
  question q;
  int64_t extents[RANK_MAX];
  uint64_t size = 0;
  shw_error* err = NULL;
  if (read_question(env, layout, shape, rank, &q) < 0) return NULL;
  const shw_status status =
      shw_layout_local_shape(q.layout, q.shape, q.ndim, q.rank, extents, RANK_MAX, &size, &err);
  return status == SHW_OK ? shw_java_longs(env, (const jlong*)extents, size)
                          : failed(env, status, err);
}

NATIVE(jboolean, layoutContains)(JNIEnv* env, jclass type, jlong layout, jint rank) {
  (void)env;
  (void)type;
  return shw_layout_contains((const shw_layout*)(intptr_t)layout, rank) ? JNI_TRUE : JNI_FALSE;
}

/* ---- grids ---- */

/* A shard, whose arrays are held; `axes` of the global tensor. */
typedef struct grid {
  shw_grid_shard shard;
  ShwJavaHeld held;
  jsize axes;
} grid;

/* -1 with an exception pending; grid_free follows in either case. */
static int read_grid(JNIEnv* env, jobject given, grid* into) {
  into->held.count = 0;
  if (shw_java_struct_read(env, given, &shw_grid_shard_table, &into->shard, &into->held) == NULL)
    return -1;
  const int64_t axes = (int64_t)into->shard.prepended + into->shard.local_ndim;
  into->axes = (jsize)axes;
  return into->shard.prepended >= 0 && axes <= RANK_MAX ? 0 : too_many(env);
}

static void grid_free(JNIEnv* env, grid* shard) {
  shw_java_struct_free(env, &shard->held);
}

/* Three rows of as many numbers each. */
static jlongArray rows_of(JNIEnv* env, int64_t rows[3][RANK_MAX + 1], jsize count) {
  jlong numbers[3 * (RANK_MAX + 1)];
  for (jsize i = 0; i < 3 * count; ++i) numbers[i] = rows[i / count][i % count];
  return shw_java_longs(env, numbers, 3 * (uint64_t)count);
}

/* Global shape, offsets, fragments. */
NATIVE(jlongArray, gridPlace)(JNIEnv* env, jclass type, jobject given, jlongArray places) {
  (void)type;
  grid shard;
  int64_t out[3][RANK_MAX + 1];
  jlong numbers[3 * RANK_MAX];
  jlongArray made = NULL;
  const jsize count =
      read_grid(env, given, &shard) < 0 ? -1 : read_longs(env, places, numbers, 3 * RANK_MAX);
  if (count >= 0) {
    shw_error* err = NULL;
    const shw_status status = megatron_grid_place(
        &shard.shard, (const int64_t*)numbers, (uint64_t)count / 3, out[0], out[1], out[2], &err);
    made = status == SHW_OK ? rows_of(env, out, shard.axes) : failed(env, status, err);
  }
  grid_free(env, &shard);
  return made;
}

static shw_status grid_boxes(const void* arguments, boxes* into, uint64_t capacity,
                             shw_error** err) {
  return megatron_grid_boxes(arguments, into->values, capacity, &into->size, into->local_offsets,
                             err);
}

NATIVE(jlongArray, gridPieces)(JNIEnv* env, jclass type, jobject given) {
  (void)type;
  grid shard;
  jlongArray pieces = NULL;
  if (read_grid(env, given, &shard) == 0) {
    const int empty = (shard.shard.flags & SHW_GRID_FLAT) != 0 && shard.shard.flat_size == 0;
    pieces = list_pieces(env, grid_boxes, &shard.shard, shard.axes, empty ? 0 : 1);
  }
  grid_free(env, &shard);
  return pieces;
}

/* Shape, offsets, sizes. */
NATIVE(jlongArray, gridFlatEntry)(JNIEnv* env, jclass type, jobject given) {
  (void)type;
  grid shard;
  int64_t out[3][RANK_MAX + 1];
  jlongArray made = NULL;
  if (read_grid(env, given, &shard) == 0) {
    shw_error* err = NULL;
    const shw_status status = megatron_grid_flat_entry(&shard.shard, out[0], out[1], out[2], &err);
    made = status == SHW_OK ? rows_of(env, out, shard.axes + 1) : failed(env, status, err);
  }
  grid_free(env, &shard);
  return made;
}

typedef struct flat_chunk {
  int64_t shape[RANK_MAX], entry[RANK_MAX], box[2 * RANK_MAX];
  jsize ndim;
} flat_chunk;

static shw_status flat_boxes(const void* arguments, boxes* into, uint64_t capacity,
                             shw_error** err) {
  const flat_chunk* chunk = arguments;
  return megatron_grid_flat_boxes(chunk->shape, chunk->ndim, chunk->entry, chunk->box, into->values,
                                  capacity, &into->size, into->local_offsets, err);
}

/* Java has checked that the lengths fit together. */
NATIVE(jlongArray, gridFlatPieces)(JNIEnv* env, jclass type, jlongArray shape, jlongArray entry,
                                   jlongArray box) {
  (void)type;
  flat_chunk chunk;
  chunk.ndim = read_longs(env, shape, (jlong*)chunk.shape, RANK_MAX - 1);
  if (chunk.ndim < 0 || read_longs(env, entry, (jlong*)chunk.entry, RANK_MAX) < 0) return NULL;
  const jsize count = read_longs(env, box, (jlong*)chunk.box, 2 * RANK_MAX);
  if (count < 0) return NULL;
  return list_pieces(env, flat_boxes, &chunk, chunk.ndim, chunk.box[count - 1] > 0 ? 1 : 0);
}

/* First part and number of parts. */
NATIVE(jlongArray, gridOverlap)(JNIEnv* env, jclass type, jlong stored, jlong wanted, jlong index) {
  (void)type;
  int64_t parts[2];
  shw_error* err = NULL;
  const shw_status status =
      megatron_grid_overlap(stored, wanted, index, &parts[0], &parts[1], &err);
  return status == SHW_OK ? shw_java_longs(env, (const jlong*)parts, 2) : failed(env, status, err);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of layouts and of shards of grids as tuples (offsets, sizes, local offset). */
#include "bindings/native/megatron.h"
#include "bindings/python/native/native.h"

#include <stdlib.h>

static PyObject* failed(shw_status status, shw_error* error) {
  shw_py_raise(status, error);
  return NULL;
}

/* Boxes on their way out: `call` writes them into memory of the size that it asked for. */
typedef struct boxes {
  int64_t* values;
  int64_t* local_offsets;
  uint64_t size; /* of values */
} boxes;
typedef shw_status (*box_call)(const void* arguments, boxes* into, uint64_t capacity,
                               shw_error** error);

static PyObject* piece_at(const boxes* from, uint64_t index, Py_ssize_t ndim) {
  const int64_t* box = from->values + index * 2 * (uint64_t)ndim;
  return Py_BuildValue("(NNL)", shw_py_int_tuple(box, ndim), shw_py_int_tuple(box + ndim, ndim),
                       (long long)from->local_offsets[index]);
}

/* List of (offsets, sizes, local offset). `count` is asked for where it cannot be told from the
 * values. */
static PyObject* list_pieces(box_call call, const void* arguments, Py_ssize_t ndim,
                             uint64_t scalar_count) {
  boxes found = {NULL, NULL, 0};
  shw_error* error = NULL;
  shw_status status = call(arguments, &found, 0, &error);
  if (status != SHW_OK && status != SHW_BUFFER_TOO_SMALL) return failed(status, error);
  const uint64_t count = ndim == 0 ? scalar_count : found.size / (2 * (uint64_t)ndim);
  found.values = malloc((found.size + 1) * sizeof *found.values);
  found.local_offsets = calloc(count + 1, sizeof *found.local_offsets);
  PyObject* list = NULL;
  if (!found.values || !found.local_offsets) {
    PyErr_NoMemory();
  } else {
    status = call(arguments, &found, found.size, &error);
    list = status == SHW_OK ? PyList_New((Py_ssize_t)count) : failed(status, error);
  }
  for (uint64_t i = 0; list && i < count; ++i) {
    PyObject* piece = piece_at(&found, i, ndim);
    if (!piece || PyList_SetItem(list, (Py_ssize_t)i, piece) < 0) Py_CLEAR(list);
  }
  free(found.values);
  free(found.local_offsets);
  return list;
}

/* ---- layouts ---- */

/* What is asked of a layout. */
typedef struct question {
  const shw_layout* layout;
  int64_t shape[SHW_PY_RANK_MAX];
  Py_ssize_t ndim;
  int32_t rank;
} question;

static int read_question(PyObject* capsule, PyObject* shape, PyObject* rank, question* into) {
  void* layout = NULL;
  into->rank = (int32_t)PyLong_AsLong(rank);
  into->ndim = PyErr_Occurred() ? -1 : shw_py_int64s(shape, into->shape, SHW_PY_RANK_MAX);
  if (into->ndim < 0 || shw_py_handle(capsule, "shw_layout", &layout) < 0) return -1;
  into->layout = layout;
  return 0;
}

static shw_status layout_boxes(const void* arguments, boxes* into, uint64_t capacity,
                               shw_error** error) {
  const question* q = arguments;
  const shw_status status = shw_layout_boxes(q->layout, q->shape, (int32_t)q->ndim, q->rank,
                                             into->values, capacity, &into->size, error);
  if (status != SHW_OK || !into->local_offsets) return status;
  uint64_t count = 0;
  return shw_layout_local_offsets(
      q->layout, q->shape, (int32_t)q->ndim, q->rank, into->local_offsets,
      q->ndim == 0 ? 1 : into->size / (2 * (uint64_t)q->ndim), &count, error);
}

PyObject* shw_py_layout_pieces(PyObject* layout, PyObject* shape, PyObject* rank) {
  question q;
  if (read_question(layout, shape, rank, &q) < 0) return NULL;
  uint64_t count = 0;
  shw_error* error = NULL;
  const shw_status status =
      shw_layout_box_count(q.layout, q.shape, (int32_t)q.ndim, q.rank, &count, &error);
  if (status != SHW_OK) return failed(status, error);
  return list_pieces(layout_boxes, &q, q.ndim, count);
}

/* ---- boxes of states ---- */

/* A tensor of a state. */
typedef struct held_tensor {
  const shw_state* state;
  uint64_t index;
} held_tensor;

static shw_status state_boxes(const void* arguments, boxes* into, uint64_t capacity,
                              shw_error** error) {
  const held_tensor* held = arguments;
  return shw_state_boxes(held->state, held->index, into->values, capacity, &into->size, error);
}

/* (global shape, pieces); local offsets are 0, as a mapped tensor has no local tensor. A scalar is
 * one box. */
PyObject* shw_py_state_pieces(PyObject* capsule, PyObject* index) {
  void* state = NULL;
  const uint64_t number = PyLong_AsUnsignedLongLong(index);
  if (PyErr_Occurred() || shw_py_handle(capsule, "shw_state", &state) < 0) return NULL;
  const held_tensor held = {state, number};
  int64_t shape[SHW_PY_RANK_MAX];
  uint64_t ndim = 0;
  shw_error* error = NULL;
  const shw_status status =
      shw_state_global_shape(state, number, shape, SHW_PY_RANK_MAX, &ndim, &error);
  if (status != SHW_OK) return failed(status, error);
  PyObject* pieces = list_pieces(state_boxes, &held, (Py_ssize_t)ndim, 1);
  if (!pieces) return NULL;
  return Py_BuildValue("(NN)", shw_py_int_tuple(shape, (Py_ssize_t)ndim), pieces);
}

/* ---- grids ---- */

static Py_ssize_t axes_of(const shw_grid_shard* shard) {
  return (Py_ssize_t)shard->prepended + shard->local_ndim;
}

/* -1 with an exception for more axes than a tensor may have. */
static int check_axes(const shw_grid_shard* shard) {
  if (shard->prepended >= 0 && axes_of(shard) <= SHW_PY_RANK_MAX) return 0;
  shw_py_fail(SHW_INVALID_ARGUMENT, "%lld values where at most %d fit", (long long)axes_of(shard),
              SHW_PY_RANK_MAX);
  return -1;
}

/* (global shape, offsets, fragments) of the local shape at places (axis, index, count, axis, index,
 * count, ...). */
PyObject* shw_py_grid_place(const shw_grid_shard* shard, PyObject* places) {
  int64_t global[SHW_PY_RANK_MAX], offsets[SHW_PY_RANK_MAX], fragments[SHW_PY_RANK_MAX];
  const Py_ssize_t count = check_axes(shard) < 0 ? -1 : PySequence_Size(places);
  int64_t* values = count < 0 ? NULL : malloc(((size_t)count + 1) * sizeof *values);
  if (count >= 0 && !values) return PyErr_NoMemory();
  PyObject* result = NULL;
  if (count >= 0 && shw_py_int64s(places, values, count) >= 0) {
    shw_error* error = NULL;
    const shw_status status =
        megatron_grid_place(shard, values, (uint64_t)count / 3, global, offsets, fragments, &error);
    const Py_ssize_t axes = axes_of(shard);
    result = status == SHW_OK
                 ? Py_BuildValue("(NNN)", shw_py_int_tuple(global, axes),
                                 shw_py_int_tuple(offsets, axes), shw_py_int_tuple(fragments, axes))
                 : failed(status, error);
  }
  free(values);
  return result;
}

static shw_status grid_boxes(const void* arguments, boxes* into, uint64_t capacity,
                             shw_error** error) {
  return megatron_grid_boxes(arguments, into->values, capacity, &into->size, into->local_offsets,
                             error);
}

PyObject* shw_py_grid_pieces(const shw_grid_shard* shard) {
  if (check_axes(shard) < 0) return NULL;
  const int empty = (shard->flags & SHW_GRID_FLAT) != 0 && shard->flat_size == 0;
  return list_pieces(grid_boxes, shard, axes_of(shard), empty ? 0 : 1);
}

/* (shape, offsets, sizes) */
PyObject* shw_py_grid_flat_entry(const shw_grid_shard* shard) {
  int64_t shape[SHW_PY_RANK_MAX + 1], offsets[SHW_PY_RANK_MAX + 1], sizes[SHW_PY_RANK_MAX + 1];
  if (check_axes(shard) < 0) return NULL;
  shw_error* error = NULL;
  const shw_status status = megatron_grid_flat_entry(shard, shape, offsets, sizes, &error);
  if (status != SHW_OK) return failed(status, error);
  const Py_ssize_t axes = axes_of(shard) + 1;
  return Py_BuildValue("(NNN)", shw_py_int_tuple(shape, axes), shw_py_int_tuple(offsets, axes),
                       shw_py_int_tuple(sizes, axes));
}

/* A chunk of a flattened entry: its offsets, then its sizes. */
typedef struct flat_chunk {
  int64_t shape[SHW_PY_RANK_MAX], entry[SHW_PY_RANK_MAX], box[2 * SHW_PY_RANK_MAX];
  Py_ssize_t ndim;
} flat_chunk;

static shw_status flat_boxes(const void* arguments, boxes* into, uint64_t capacity,
                             shw_error** error) {
  const flat_chunk* chunk = arguments;
  return megatron_grid_flat_boxes(chunk->shape, (int32_t)chunk->ndim, chunk->entry, chunk->box,
                                  into->values, capacity, &into->size, into->local_offsets, error);
}

PyObject* shw_py_grid_flat_pieces(PyObject* shape, PyObject* entry, PyObject* box) {
  flat_chunk chunk;
  chunk.ndim = shw_py_int64s(shape, chunk.shape, SHW_PY_RANK_MAX - 1);
  const Py_ssize_t axes = chunk.ndim < 0 ? -1 : shw_py_int64s(entry, chunk.entry, SHW_PY_RANK_MAX);
  const Py_ssize_t values = axes < 0 ? -1 : shw_py_int64s(box, chunk.box, 2 * SHW_PY_RANK_MAX);
  if (values < 0) return NULL;
  if (axes != chunk.ndim + 1 || values != 2 * axes) {
    return shw_py_fail(
        SHW_INVALID_ARGUMENT,
        "an entry of %lld axes and a chunk of %lld values do not fit a shape of %lld",
        (long long)axes, (long long)values, (long long)chunk.ndim);
  }
  return list_pieces(flat_boxes, &chunk, chunk.ndim, chunk.box[values - 1] > 0 ? 1 : 0);
}

/* (begin, count) */
PyObject* shw_py_grid_overlap(PyObject* stored, PyObject* wanted, PyObject* index) {
  const long long numbers[] = {PyLong_AsLongLong(stored), PyLong_AsLongLong(wanted),
                               PyLong_AsLongLong(index)};
  if (PyErr_Occurred()) return NULL;
  int64_t begin = 0, count = 0;
  shw_error* error = NULL;
  const shw_status status =
      megatron_grid_overlap(numbers[0], numbers[1], numbers[2], &begin, &count, &error);
  if (status != SHW_OK) return failed(status, error);
  return Py_BuildValue("(LL)", (long long)begin, (long long)count);
}

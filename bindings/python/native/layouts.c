/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts and shards of grids: descriptions come as tuples, pieces go as tuples (offsets, sizes,
 * local offset). */
#include "bindings/python/native/native.h"

#include <stdlib.h>
#include <string.h>

#define RANK_MAX 64

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

/* Numbers of a specification; `map_offsets` is NULL without a tensor map. */
typedef struct layout_numbers {
  int32_t *ranks, *kinds, *dims, *factors, *map;
  uint64_t* map_offsets;
  Py_ssize_t rank_count, map_ndim;
} layout_numbers;

/* A tensor map as a list of lists of axes; None = placements. */
static int read_map(PyObject* map, layout_numbers* into) {
  if (map == Py_None) return 0;
  const Py_ssize_t ndim = PySequence_Size(map);
  if (ndim < 0) return -1;
  into->map_ndim = ndim;
  into->map_offsets = calloc((size_t)ndim + 1, sizeof *into->map_offsets);
  if (!into->map_offsets) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t d = 0; d < ndim; ++d) {
    PyObject* entry = PySequence_GetItem(map, d);
    int32_t* axes = NULL;
    Py_ssize_t count = 0;
    const int bad = !entry || shw_py_int32s(entry, &axes, &count) < 0;
    const uint64_t begin = into->map_offsets[d];
    int32_t* grown = bad ? NULL : realloc(into->map, (begin + (uint64_t)count + 1) * sizeof *grown);
    if (grown) {
      into->map = grown;
      memcpy(grown + begin, axes, (size_t)count * sizeof *axes);
      into->map_offsets[d + 1] = begin + (uint64_t)count;
    }
    free(axes);
    Py_XDECREF(entry);
    if (!bad && !grown) PyErr_NoMemory();
    if (!grown) return -1;
  }
  return 0;
}

static void free_numbers(layout_numbers* numbers) {
  free(numbers->ranks);
  free(numbers->kinds);
  free(numbers->dims);
  free(numbers->factors);
  free(numbers->map);
  free(numbers->map_offsets);
}

/* (mesh_shape, axis_names as list of bytes or None, ranks or None, kinds, dims, factors, tensor map
 * or None) */
PyObject* shw_py_layout_create(PyObject* specification) {
  PyObject *mesh_shape, *axis_names, *ranks, *kinds, *dims, *factors, *map;
  if (!PyArg_ParseTuple(specification, "OOOOOOO", &mesh_shape, &axis_names, &ranks, &kinds, &dims,
                        &factors, &map))
    return NULL;
  int64_t extents[RANK_MAX];
  shw_py_blob names = {0};
  layout_numbers numbers = {0};
  Py_ssize_t ignored = 0;
  PyObject* made = NULL;
  const Py_ssize_t ndim = shw_py_int64s(mesh_shape, extents, RANK_MAX);
  if (ndim < 0 || (axis_names != Py_None && shw_py_join(axis_names, &names) < 0) ||
      shw_py_int32s(ranks, &numbers.ranks, &numbers.rank_count) < 0 ||
      shw_py_int32s(kinds, &numbers.kinds, &ignored) < 0 ||
      shw_py_int32s(dims, &numbers.dims, &ignored) < 0 ||
      shw_py_int32s(factors, &numbers.factors, &ignored) < 0 || read_map(map, &numbers) < 0) {
    goto done;
  }
  shw_layout_spec spec;
  shw_layout_spec_init(&spec, sizeof spec);
  spec.mesh_ndim = (int32_t)ndim;
  spec.mesh_shape = extents;
  spec.axis_names = names.data;
  spec.axis_name_offsets = names.offsets;
  spec.ranks = numbers.ranks;
  spec.rank_count = (uint64_t)numbers.rank_count;
  spec.placement_kinds = numbers.kinds;
  spec.placement_dims = numbers.dims;
  spec.placement_factors = numbers.factors;
  spec.tensor_map = numbers.map;
  spec.tensor_map_offsets = numbers.map_offsets;
  spec.tensor_ndim = (int32_t)numbers.map_ndim;
  shw_layout* layout = NULL;
  shw_error* error = NULL;
  const shw_status status = shw_layout_create(&spec, &layout, &error);
  made = status == SHW_OK ? shw_py_own_layout(layout) : failed(status, error);
done:
  shw_py_blob_free(&names);
  free_numbers(&numbers);
  return made;
}

/* What is asked of a layout. */
typedef struct question {
  const shw_layout* layout;
  int64_t shape[RANK_MAX];
  Py_ssize_t ndim;
  int32_t rank;
} question;

static int read_question(PyObject* capsule, PyObject* shape, PyObject* rank, question* into) {
  void* layout = NULL;
  into->rank = (int32_t)PyLong_AsLong(rank);
  into->ndim = PyErr_Occurred() ? -1 : shw_py_int64s(shape, into->shape, RANK_MAX);
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

PyObject* shw_py_layout_local_shape(PyObject* layout, PyObject* shape, PyObject* rank) {
  question q;
  int64_t extents[RANK_MAX];
  uint64_t size = 0;
  if (read_question(layout, shape, rank, &q) < 0) return NULL;
  shw_error* error = NULL;
  const shw_status status = shw_layout_local_shape(q.layout, q.shape, (int32_t)q.ndim, q.rank,
                                                   extents, RANK_MAX, &size, &error);
  return status == SHW_OK ? shw_py_int_tuple(extents, (Py_ssize_t)size) : failed(status, error);
}

/* ---- grids ---- */

/* Memory behind the pointers of a shard. */
typedef struct grid {
  shw_grid_shard shard;
  int64_t local[RANK_MAX], global[RANK_MAX], offsets[RANK_MAX], fragments[RANK_MAX];
  Py_ssize_t ndim; /* of the global tensor */
} grid;

/* (local shape, global shape, offsets, fragments or None, prepended, flags, flat begin, flat
 * size) */
static int read_grid(PyObject* description, grid* into) {
  PyObject *local, *global, *offsets, *fragments;
  long long begin, size;
  shw_grid_shard* shard = &into->shard;
  shw_grid_shard_init(shard, sizeof *shard);
  if (!PyArg_ParseTuple(description, "OOOOiILL", &local, &global, &offsets, &fragments,
                        &shard->prepended, &shard->flags, &begin, &size))
    return -1;
  const Py_ssize_t local_ndim = shw_py_int64s(local, into->local, RANK_MAX);
  into->ndim = local_ndim < 0 ? -1 : shw_py_int64s(global, into->global, RANK_MAX);
  const Py_ssize_t offset_count =
      into->ndim < 0 ? -1 : shw_py_int64s(offsets, into->offsets, RANK_MAX);
  const Py_ssize_t fragment_count = offset_count < 0 || fragments == Py_None
                                        ? offset_count
                                        : shw_py_int64s(fragments, into->fragments, RANK_MAX);
  if (fragment_count < 0) return -1;
  if (offset_count != into->ndim || fragment_count != into->ndim ||
      local_ndim + shard->prepended != into->ndim) {
    shw_py_fail(SHW_INVALID_ARGUMENT,
                "%lld local and %d prepended axes, %lld offsets and %lld fragments do not fit a "
                "global shape of %lld",
                (long long)local_ndim, shard->prepended, (long long)offset_count,
                (long long)fragment_count, (long long)into->ndim);
    return -1;
  }
  shard->local_ndim = (int32_t)local_ndim;
  shard->local_shape = into->local;
  shard->global_shape = into->global;
  shard->offsets = into->offsets;
  shard->fragments = fragments == Py_None ? NULL : into->fragments;
  shard->flat_begin = begin;
  shard->flat_size = size;
  return 0;
}

/* (global shape, offsets, fragments) of a local shape at places (axis, index, count, axis, index,
 * count, ...). */
PyObject* shw_py_grid_place(PyObject* local_shape, PyObject* prepended, PyObject* places) {
  grid made;
  shw_grid_shard_init(&made.shard, sizeof made.shard);
  made.shard.prepended = (int32_t)PyLong_AsLong(prepended);
  const Py_ssize_t ndim = PyErr_Occurred() ? -1 : shw_py_int64s(local_shape, made.local, RANK_MAX);
  const Py_ssize_t count = ndim < 0 ? -1 : PySequence_Size(places);
  int64_t* values = count < 0 ? NULL : malloc(((size_t)count + 1) * sizeof *values);
  if (count >= 0 && !values) return PyErr_NoMemory();
  PyObject* result = NULL;
  if (count >= 0 && shw_py_int64s(places, values, count) >= 0) {
    made.shard.local_ndim = (int32_t)ndim;
    made.shard.local_shape = made.local;
    shw_error* error = NULL;
    const shw_status status = shw_grid_place(&made.shard, values, (uint64_t)count / 3, made.global,
                                             made.offsets, made.fragments, &error);
    const Py_ssize_t axes = ndim + made.shard.prepended;
    result = status == SHW_OK ? Py_BuildValue("(NNN)", shw_py_int_tuple(made.global, axes),
                                              shw_py_int_tuple(made.offsets, axes),
                                              shw_py_int_tuple(made.fragments, axes))
                              : failed(status, error);
  }
  free(values);
  return result;
}

static shw_status grid_boxes(const void* arguments, boxes* into, uint64_t capacity,
                             shw_error** error) {
  return shw_grid_boxes(arguments, into->values, capacity, &into->size, into->local_offsets, error);
}

PyObject* shw_py_grid_pieces(PyObject* description) {
  grid shard;
  if (read_grid(description, &shard) < 0) return NULL;
  const int empty = (shard.shard.flags & SHW_GRID_FLAT) != 0 && shard.shard.flat_size == 0;
  return list_pieces(grid_boxes, &shard.shard, shard.ndim, empty ? 0 : 1);
}

/* (shape, offsets, sizes) */
PyObject* shw_py_grid_flat_entry(PyObject* description) {
  grid shard;
  int64_t shape[RANK_MAX + 1], offsets[RANK_MAX + 1], sizes[RANK_MAX + 1];
  if (read_grid(description, &shard) < 0) return NULL;
  shw_error* error = NULL;
  const shw_status status = shw_grid_flat_entry(&shard.shard, shape, offsets, sizes, &error);
  if (status != SHW_OK) return failed(status, error);
  const Py_ssize_t axes = shard.ndim + 1;
  return Py_BuildValue("(NNN)", shw_py_int_tuple(shape, axes), shw_py_int_tuple(offsets, axes),
                       shw_py_int_tuple(sizes, axes));
}

/* A chunk of a flattened entry: its offsets, then its sizes. */
typedef struct flat_chunk {
  int64_t shape[RANK_MAX], entry[RANK_MAX], box[2 * RANK_MAX];
  Py_ssize_t ndim;
} flat_chunk;

static shw_status flat_boxes(const void* arguments, boxes* into, uint64_t capacity,
                             shw_error** error) {
  const flat_chunk* chunk = arguments;
  return shw_grid_flat_boxes(chunk->shape, (int32_t)chunk->ndim, chunk->entry, chunk->box,
                             into->values, capacity, &into->size, into->local_offsets, error);
}

PyObject* shw_py_grid_flat_pieces(PyObject* shape, PyObject* entry, PyObject* box) {
  flat_chunk chunk;
  chunk.ndim = shw_py_int64s(shape, chunk.shape, RANK_MAX - 1);
  const Py_ssize_t axes = chunk.ndim < 0 ? -1 : shw_py_int64s(entry, chunk.entry, RANK_MAX);
  const Py_ssize_t values = axes < 0 ? -1 : shw_py_int64s(box, chunk.box, 2 * RANK_MAX);
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
      shw_grid_overlap(numbers[0], numbers[1], numbers[2], &begin, &count, &error);
  if (status != SHW_OK) return failed(status, error);
  return Py_BuildValue("(LL)", (long long)begin, (long long)count);
}

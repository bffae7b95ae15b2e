/* SPDX-License-Identifier: Apache-2.0
 *
 * Planning on descriptions: arrays come in as anything with the buffer protocol and are read where
 * they lie, with their lengths checked against one another; results go out as bytes. The GIL is
 * given up while the library works. */
#include "bindings/python/native/native.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/native/entry_columns.h"

/* A batch over buffers that are held. */
typedef struct {
  shw_entry_batch batch;
  Py_buffer views[ENTRY_COLUMNS];
  int held[ENTRY_COLUMNS];
} held_batch;

static void release_batch(held_batch* held) {
  for (size_t i = 0; i < ENTRY_COLUMNS; ++i) {
    if (held->held[i]) PyBuffer_Release(&held->views[i]);
    held->held[i] = 0;
  }
}

static int take_column(held_batch* held, size_t i, PyObject* object) {
  const entry_column* c = &kEntryColumns[i];
  if (object == Py_None) return 0;
  if (PyObject_GetBuffer(object, &held->views[i], PyBUF_SIMPLE) < 0) return -1;
  held->held[i] = 1;
  /* What is empty may lie anywhere: nothing is read. */
  if (held->views[i].len != 0 && c->width != 16 &&
      (uintptr_t)held->views[i].buf % (c->width < 8 ? c->width : 8) != 0) {
    shw_py_fail(SHW_INVALID_ARGUMENT, "parameter '%s' is not aligned to its elements", c->name);
    return -1;
  }
  *entry_field(&held->batch, c->offset) = held->views[i].buf;
  return 0;
}

static int check_cuts(const entry_column* c, const uint64_t* cuts, uint64_t count) {
  if (cuts[0] != 0) {
    shw_py_fail(SHW_INVALID_ARGUMENT, "parameter '%s' does not begin with 0", c->name);
    return -1;
  }
  for (uint64_t i = 0; i < count; ++i) {
    if (cuts[i + 1] < cuts[i] || cuts[i + 1] > INT64_MAX / 64) {
      shw_py_fail(SHW_INVALID_ARGUMENT, "parameter '%s' does not ascend", c->name);
      return -1;
    }
  }
  return 0;
}

static int check_length(const held_batch* held, size_t i) {
  const entry_column* c = &kEntryColumns[i];
  const uint64_t expected = entry_column_length(&held->batch, c);
  if ((uint64_t)held->views[i].len == expected * c->width) return 0;
  shw_py_fail(SHW_INVALID_ARGUMENT, "parameter '%s' has %zd bytes, expected %llu of %zu each",
              c->name, held->views[i].len, (unsigned long long)expected, c->width);
  return -1;
}

/* From (count, array, ...). On failure nothing is held. */
static int read_batch(PyObject* entries, held_batch* held) {
  memset(held, 0, sizeof *held);
  shw_entry_batch_init(&held->batch, sizeof held->batch);
  if (!PyTuple_Check(entries) || PyTuple_Size(entries) != ENTRY_COLUMNS + 1) {
    PyErr_SetString(PyExc_TypeError, "expected a count and the arrays of entries");
    return -1;
  }
  held->batch.count = PyLong_AsUnsignedLongLong(PyTuple_GetItem(entries, 0));
  if (PyErr_Occurred()) return -1;
  for (size_t i = 0; i < ENTRY_COLUMNS; ++i) {
    if (take_column(held, i, PyTuple_GetItem(entries, (Py_ssize_t)i + 1)) < 0) goto failed;
  }
  for (int cuts = 1; cuts >= 0; --cuts) {
    for (size_t i = 0; i < ENTRY_COLUMNS; ++i) {
      if (!held->held[i] || (kEntryColumns[i].length == CUTS) != cuts) continue;
      if (check_length(held, i) < 0) goto failed;
      if (cuts && check_cuts(&kEntryColumns[i], held->views[i].buf, held->batch.count) < 0)
        goto failed;
    }
  }
  return 0;
failed:
  release_batch(held);
  return -1;
}

static PyObject* one_part(shw_status status, shw_buffer* buffer, shw_error* error) {
  if (status != SHW_OK) {
    shw_py_raise(status, error);
    return NULL;
  }
  PyObject* bytes =
      PyBytes_FromStringAndSize(shw_buffer_data(buffer), (Py_ssize_t)shw_buffer_size(buffer));
  shw_buffer_release(buffer);
  return bytes;
}

static PyObject* all_parts(shw_status status, shw_buffer* buffer, shw_error* error) {
  if (status == SHW_OK) return shw_py_parts(buffer);
  shw_py_raise(status, error);
  return NULL;
}

PyObject* shw_py_plan_describe(PyObject* options, PyObject* entries) {
  shw_describe_options given = SHW_DESCRIBE_OPTIONS_INIT;
  PyObject *globs = NULL, *kinds = NULL, *agreement = NULL;
  shw_py_blob blob = {0};
  Py_ssize_t size = 0;
  char *kind_bytes = NULL, *text = NULL;
  if (!PyArg_ParseTuple(options, "iiiOSS", &given.kind, &given.rank, &given.world_size, &globs,
                        &kinds, &agreement))
    return NULL;
  if (PyBytes_AsStringAndSize(kinds, &kind_bytes, &size) < 0 || shw_py_join(globs, &blob) < 0)
    return NULL;
  given.kind_globs = blob.data;
  given.kind_offsets = blob.offsets;
  given.kind_count = blob.count;
  given.kind_values = (const int32_t*)(void*)kind_bytes;
  held_batch held;
  PyObject* plan = NULL;
  if ((uint64_t)size != blob.count * sizeof(int32_t)) {
    PyErr_SetString(PyExc_ValueError, "there are not as many kinds as patterns");
  } else if (PyBytes_AsStringAndSize(agreement, &text, &size) == 0 &&
             read_batch(entries, &held) == 0) {
    given.agreement = text;
    given.agreement_size = (uint64_t)size;
    shw_buffer* buffer = NULL;
    shw_error* error = NULL;
    shw_status status;
    Py_BEGIN_ALLOW_THREADS status = shw_plan_describe(&given, &held.batch, &buffer, &error);
    Py_END_ALLOW_THREADS release_batch(&held);
    plan = one_part(status, buffer, error);
  }
  shw_py_blob_free(&blob);
  return plan;
}

PyObject* shw_py_plan_entries(PyObject* capsule) {
  void* plan = NULL;
  if (shw_py_handle(capsule, "shw_plan", &plan) < 0) return NULL;
  shw_entry_batch batch = SHW_ENTRY_BATCH_INIT;
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status = shw_plan_entries(plan, &batch, &error);
  Py_END_ALLOW_THREADS if (status != SHW_OK) {
    shw_py_raise(status, error);
    return NULL;
  }
  PyObject* tuple = PyTuple_New(ENTRY_COLUMNS + 1);
  PyObject* count = PyLong_FromUnsignedLongLong(batch.count);
  if (!tuple || !count || PyTuple_SetItem(tuple, 0, count) < 0) {
    Py_XDECREF(tuple);
    return NULL;
  }
  for (size_t i = 0; i < ENTRY_COLUMNS; ++i) {
    const entry_column* c = &kEntryColumns[i];
    const void* data = *entry_field(&batch, c->offset);
    const uint64_t bytes = entry_column_length(&batch, c) * c->width;
    /* Texts are there with their cuts, values where there can be none are empty. */
    const int cut = c->length != CUT_BYTES || *entry_field(&batch, c->cuts);
    const int absent = !data && (bytes != 0 || !cut || strcmp(c->name, "order") == 0);
    PyObject* value = absent ? Py_NewRef(Py_None)
                             : PyBytes_FromStringAndSize(data ? data : "", (Py_ssize_t)bytes);
    if (!value || PyTuple_SetItem(tuple, (Py_ssize_t)i + 1, value) < 0) {
      Py_DECREF(tuple);
      return NULL;
    }
  }
  return tuple;
}

/* Plans one behind the other; the buffers are held until the copy is made. */
typedef struct {
  Py_buffer* views;
  Py_ssize_t held;
  shw_py_blob blob;
} joined_plans;

static void release_views(joined_plans* joined) {
  while (joined->held > 0) PyBuffer_Release(&joined->views[--joined->held]);
  free(joined->views);
  joined->views = NULL;
}

static int join_plans(PyObject* plans, joined_plans* joined) {
  memset(joined, 0, sizeof *joined);
  const Py_ssize_t count = PyList_Check(plans) ? PyList_Size(plans) : -1;
  if (count < 0) {
    PyErr_SetString(PyExc_TypeError, "expected a list of plans");
    return -1;
  }
  joined->views = calloc((size_t)count + 1, sizeof *joined->views);
  joined->blob.offsets = calloc((size_t)count + 1, sizeof(uint64_t));
  joined->blob.count = (uint64_t)count;
  if (!joined->views || !joined->blob.offsets) goto no_memory;
  for (; joined->held < count; ++joined->held) {
    PyObject* plan = PyList_GetItem(plans, joined->held);
    if (PyObject_GetBuffer(plan, &joined->views[joined->held], PyBUF_SIMPLE) < 0) goto failed;
    /* Plans have a multiple of 8 bytes, so all of them stay aligned. */
    joined->blob.offsets[joined->held + 1] =
        joined->blob.offsets[joined->held] + (uint64_t)joined->views[joined->held].len;
  }
  joined->blob.data = malloc(joined->blob.offsets[count] + 1);
  if (!joined->blob.data) goto no_memory;
  Py_BEGIN_ALLOW_THREADS for (Py_ssize_t i = 0; i < count; ++i) {
    memcpy(joined->blob.data + joined->blob.offsets[i], joined->views[i].buf,
           (size_t)joined->views[i].len);
  }
  Py_END_ALLOW_THREADS release_views(joined);
  return 0;
no_memory:
  PyErr_NoMemory();
failed:
  release_views(joined);
  shw_py_blob_free(&joined->blob);
  return -1;
}

PyObject* shw_py_plan_match(PyObject* options, PyObject* stored, PyObject* wanted) {
  shw_match_options given = SHW_MATCH_OPTIONS_INIT;
  void* plan = NULL;
  held_batch held;
  if (!PyArg_ParseTuple(options, "iiiIi", &given.order, &given.cover, &given.missing, &given.flags,
                        &given.rank) ||
      shw_py_handle(stored, "shw_plan", &plan) < 0 || read_batch(wanted, &held) < 0)
    return NULL;
  shw_buffer* buffer = NULL;
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status = shw_plan_match(&given, plan, &held.batch, &buffer, &error);
  Py_END_ALLOW_THREADS release_batch(&held);
  return all_parts(status, buffer, error);
}

/* Arrays of shw_plan_owners: weights, sets, secondary, set offsets, holders. */
enum { WEIGHTS, SETS, SECONDARY, SET_OFFSETS, HOLDERS, OWNER_ARRAYS };

static PyObject* choose(const Py_buffer* views, const int* held, int32_t rank_count) {
  const uint64_t count = (uint64_t)views[SETS].len / 4;
  const uint64_t set_count = (uint64_t)views[SET_OFFSETS].len / 8;
  const uint64_t* cuts = views[SET_OFFSETS].buf;
  if ((uint64_t)views[WEIGHTS].len != count * 8 ||
      (held[SECONDARY] && (uint64_t)views[SECONDARY].len != count) || set_count == 0 ||
      cuts[set_count - 1] * 4 != (uint64_t)views[HOLDERS].len)
    return shw_py_fail(SHW_INVALID_ARGUMENT, "the arrays of shards or sets differ in length");
  PyObject* owners = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * 4));
  if (!owners) return NULL;
  int32_t* out = (int32_t*)(void*)PyBytes_AsString(owners);
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status = shw_plan_owners(
      count, views[WEIGHTS].buf, views[SETS].buf, held[SECONDARY] ? views[SECONDARY].buf : NULL,
      set_count - 1, cuts, views[HOLDERS].buf, rank_count, out, &error);
  Py_END_ALLOW_THREADS if (status == SHW_OK) return owners;
  Py_DECREF(owners);
  shw_py_raise(status, error);
  return NULL;
}

PyObject* shw_py_plan_owners(PyObject* arrays, PyObject* rank_count) {
  Py_buffer views[OWNER_ARRAYS];
  int held[OWNER_ARRAYS] = {0};
  PyObject* owners = NULL;
  const long ranks = PyLong_AsLong(rank_count);
  if (PyErr_Occurred()) return NULL;
  if (!PyTuple_Check(arrays) || PyTuple_Size(arrays) != OWNER_ARRAYS) {
    PyErr_SetString(PyExc_TypeError, "expected five arrays");
    return NULL;
  }
  for (int i = 0; i < OWNER_ARRAYS; ++i) {
    PyObject* array = PyTuple_GetItem(arrays, i);
    if (i == SECONDARY && array == Py_None) continue;
    if (PyObject_GetBuffer(array, &views[i], PyBUF_SIMPLE) < 0) goto done;
    held[i] = 1;
  }
  owners = choose(views, held, ranks < 0 || ranks > INT32_MAX ? -1 : (int32_t)ranks);
done:
  for (int i = 0; i < OWNER_ARRAYS; ++i) {
    if (held[i]) PyBuffer_Release(&views[i]);
  }
  return owners;
}

PyObject* shw_py_plan_digest(PyObject* capsule) {
  void* plan = NULL;
  if (shw_py_handle(capsule, "shw_plan", &plan) < 0) return NULL;
  shw_buffer* buffer = NULL;
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status = shw_plan_digest(plan, &buffer, &error);
  Py_END_ALLOW_THREADS return one_part(status, buffer, error);
}

PyObject* shw_py_content_digest(PyObject* data) {
  Py_buffer view;
  if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) return NULL;
  shw_buffer* buffer = NULL;
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status = shw_content_digest(view.buf, (uint64_t)view.len, &buffer, &error);
  Py_END_ALLOW_THREADS PyBuffer_Release(&view);
  return one_part(status, buffer, error);
}

/* ---- global plans ---- */

/* Handles of layouts, one per entry or NULL for None; none for None. */
static int read_layouts(PyObject* layouts, uint64_t count, const shw_layout*** out) {
  *out = NULL;
  if (layouts == Py_None) return 0;
  if (!PyList_Check(layouts) || (uint64_t)PyList_Size(layouts) != count) {
    PyErr_SetString(PyExc_ValueError, "expected as many layouts as entries");
    return -1;
  }
  const shw_layout** list = calloc((size_t)count + 1, sizeof *list);
  if (!list) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < PyList_Size(layouts); ++i) {
    void* layout = NULL;
    if (shw_py_handle(PyList_GetItem(layouts, i), "shw_layout", &layout) < 0) {
      free(list);
      return -1;
    }
    list[i] = layout;
  }
  *out = list;
  return 0;
}

PyObject* shw_py_global_plan_describe(PyObject* options, PyObject* entries, PyObject* layouts) {
  shw_describe_options given = SHW_DESCRIBE_OPTIONS_INIT;
  PyObject *globs = NULL, *kinds = NULL, *agreement = NULL, *parts = NULL;
  Py_ssize_t kinds_size = 0, agreement_size = 0;
  char *kind_bytes = NULL, *text = NULL;
  shw_py_blob blob = {0};
  const shw_layout** list = NULL;
  held_batch held;
  if (!PyArg_ParseTuple(options, "iiOSS", &given.rank, &given.world_size, &globs, &kinds,
                        &agreement) ||
      PyBytes_AsStringAndSize(kinds, &kind_bytes, &kinds_size) < 0 ||
      PyBytes_AsStringAndSize(agreement, &text, &agreement_size) < 0 ||
      shw_py_join(globs, &blob) < 0)
    return NULL;
  given.kind_globs = blob.data;
  given.kind_offsets = blob.offsets;
  given.kind_count = blob.count;
  given.kind_values = (const int32_t*)(void*)kind_bytes;
  given.agreement = text;
  given.agreement_size = (uint64_t)agreement_size;
  if ((uint64_t)kinds_size != blob.count * sizeof(int32_t)) {
    PyErr_SetString(PyExc_ValueError, "there are not as many kinds as patterns");
  } else if (read_batch(entries, &held) == 0) {
    if (read_layouts(layouts, held.batch.count, &list) == 0) {
      shw_buffer* buffer = NULL;
      shw_error* error = NULL;
      shw_status status;
      Py_BEGIN_ALLOW_THREADS status =
          shw_global_plan_describe(&given, &held.batch, list, &buffer, &error);
      Py_END_ALLOW_THREADS parts = all_parts(status, buffer, error);
      free(list);
    }
    release_batch(&held);
  }
  shw_py_blob_free(&blob);
  return parts;
}

PyObject* shw_py_global_plan_representatives(PyObject* digests) {
  Py_buffer view;
  if (PyObject_GetBuffer(digests, &view, PyBUF_SIMPLE) < 0) return NULL;
  shw_buffer* buffer = NULL;
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status =
      shw_global_plan_representatives(view.buf, (uint64_t)view.len / 16, &buffer, &error);
  Py_END_ALLOW_THREADS PyBuffer_Release(&view);
  return one_part(status, buffer, error);
}

PyObject* shw_py_global_plan(PyObject* options, PyObject* digests, PyObject* descriptions,
                             PyObject* parts) {
  shw_merge_options given = SHW_MERGE_OPTIONS_INIT;
  joined_plans all, own;
  Py_buffer view;
  if (!PyArg_ParseTuple(options, "iii", &given.owner, &given.preset, &given.verify_replicas) ||
      PyObject_GetBuffer(digests, &view, PyBUF_SIMPLE) < 0)
    return NULL;
  if (join_plans(descriptions, &all) < 0) {
    PyBuffer_Release(&view);
    return NULL;
  }
  if (join_plans(parts, &own) < 0) {
    shw_py_blob_free(&all.blob);
    PyBuffer_Release(&view);
    return NULL;
  }
  shw_global_plan* plan = NULL;
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status = shw_global_plan_create(
      &given, view.buf, (uint64_t)view.len / 16, all.blob.data, all.blob.offsets, all.blob.count,
      own.blob.data, own.blob.offsets, own.blob.count, &plan, &error);
  Py_END_ALLOW_THREADS shw_py_blob_free(&own.blob);
  shw_py_blob_free(&all.blob);
  PyBuffer_Release(&view);
  if (status == SHW_OK) return shw_py_own_global_plan(plan);
  shw_py_raise(status, error);
  return NULL;
}

PyObject* shw_py_global_plan_write_list(PyObject* capsule, PyObject* arguments) {
  void* plan = NULL;
  int rank = 0;
  const char *generation = NULL, *digest = NULL;
  Py_ssize_t digest_size = 0;
  if (shw_py_handle(capsule, "shw_global_plan", &plan) < 0 ||
      !PyArg_ParseTuple(arguments, "isz#", &rank, &generation, &digest, &digest_size))
    return NULL;
  if (digest && digest_size != 16) {
    PyErr_SetString(PyExc_ValueError, "a plan digest has 16 bytes");
    return NULL;
  }
  shw_buffer* buffer = NULL;
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status =
      shw_global_plan_write_list(plan, rank, generation, digest, &buffer, &error);
  Py_END_ALLOW_THREADS return one_part(status, buffer, error);
}

PyObject* shw_py_global_plan_owners(PyObject* capsule, PyObject* name) {
  void* plan = NULL;
  Py_ssize_t size = 0;
  char* text = NULL;
  if (shw_py_handle(capsule, "shw_global_plan", &plan) < 0 ||
      PyBytes_AsStringAndSize(name, &text, &size) < 0)
    return NULL;
  shw_buffer* buffer = NULL;
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status =
      shw_global_plan_owners(plan, text, (uint64_t)size, &buffer, &error);
  Py_END_ALLOW_THREADS return one_part(status, buffer, error);
}

PyObject* shw_py_global_plan_expand(PyObject* capsule, const char* generation) {
  void* plan = NULL;
  if (shw_py_handle(capsule, "shw_global_plan", &plan) < 0) return NULL;
  shw_buffer* buffer = NULL;
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status = shw_global_plan_expand(plan, generation, &buffer, &error);
  Py_END_ALLOW_THREADS return all_parts(status, buffer, error);
}

#define DEFINE_QUESTION(name)                                                      \
  PyObject* shw_py_global_plan_##name(PyObject* capsule) {                         \
    void* plan = NULL;                                                             \
    if (shw_py_handle(capsule, "shw_global_plan", &plan) < 0) return NULL;         \
    shw_buffer* buffer = NULL;                                                     \
    shw_error* error = NULL;                                                       \
    shw_status status;                                                             \
    Py_BEGIN_ALLOW_THREADS status = shw_global_plan_##name(plan, &buffer, &error); \
    Py_END_ALLOW_THREADS return one_part(status, buffer, error);                   \
  }
DEFINE_QUESTION(rank_bytes)
DEFINE_QUESTION(json)
DEFINE_QUESTION(digest)
#undef DEFINE_QUESTION

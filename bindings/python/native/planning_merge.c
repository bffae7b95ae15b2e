/* SPDX-License-Identifier: Apache-2.0
 *
 * Merging of plans without a copy on the way in or out: plans are read where the host has them, and
 * parts of the result are views of one buffer of the library, which lives as long as one of them.
 * The GIL is given up while the library works. */
#include <stdlib.h>
#include <string.h>

#include "bindings/python/native/native.h"

/* ---- parts that are views ---- */

typedef struct {
  PyObject_HEAD shw_buffer* buffer;
} shared_buffer;

static PyTypeObject* shared_type;

static int shared_getbuffer(PyObject* object, Py_buffer* view, int flags) {
  shw_buffer* buffer = ((shared_buffer*)object)->buffer;
  void* data = (void*)(uintptr_t)shw_buffer_data(buffer);
  return PyBuffer_FillInfo(view, object, data, (Py_ssize_t)shw_buffer_size(buffer), 1, flags);
}

static void shared_dealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  shw_buffer_release(((shared_buffer*)object)->buffer);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(object);
  Py_DECREF(type);
}

static PyType_Slot shared_slots[] = {{Py_tp_dealloc, (void*)shared_dealloc},
                                     {Py_bf_getbuffer, (void*)shared_getbuffer},
                                     {Py_tp_doc, "Bytes of the library, behind memoryviews."},
                                     {0, NULL}};
static PyType_Spec shared_spec = {
    "shardwright._native._shw_native.SharedBuffer", sizeof(shared_buffer), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, shared_slots};

int shw_py_init_buffers(PyObject* module) {
  shared_type = (PyTypeObject*)PyType_FromSpec(&shared_spec);
  if (!shared_type) return -1;
  return PyModule_AddObjectRef(module, "SharedBuffer", (PyObject*)shared_type);
}

/* Takes the buffer: a list with one memoryview per part. */
static PyObject* views_of(shw_buffer* buffer) {
  const uint64_t count = shw_buffer_part_count(buffer);
  const uint64_t* cuts = shw_buffer_part_offsets(buffer);
  shared_buffer* owner = (shared_buffer*)PyType_GenericAlloc(shared_type, 0);
  if (!owner) {
    shw_buffer_release(buffer);
    return NULL;
  }
  owner->buffer = buffer;
  PyObject* whole = PyMemoryView_FromObject((PyObject*)owner);
  PyObject* list = whole ? PyList_New((Py_ssize_t)count) : NULL;
  for (uint64_t i = 0; list && i < count; ++i) {
    PyObject* part = PySequence_GetSlice(whole, (Py_ssize_t)cuts[i], (Py_ssize_t)cuts[i + 1]);
    if (!part || PyList_SetItem(list, (Py_ssize_t)i, part) < 0) Py_CLEAR(list);
  }
  Py_XDECREF(whole);
  Py_DECREF(owner);
  return list;
}

/* ---- plans where they lie ---- */

typedef struct {
  Py_buffer* views;
  const void** data;
  uint64_t* sizes;
  Py_ssize_t held;
} held_plans;

static void release_plans(held_plans* plans) {
  while (plans->held > 0) PyBuffer_Release(&plans->views[--plans->held]);
  free(plans->views);
  free((void*)plans->data);
  free(plans->sizes);
}

static int hold_plans(PyObject* list, held_plans* plans) {
  memset(plans, 0, sizeof *plans);
  const Py_ssize_t count = PyList_Check(list) ? PyList_Size(list) : -1;
  if (count < 0) {
    PyErr_SetString(PyExc_TypeError, "expected a list of plans");
    return -1;
  }
  plans->views = calloc((size_t)count + 1, sizeof *plans->views);
  plans->data = calloc((size_t)count + 1, sizeof *plans->data);
  plans->sizes = calloc((size_t)count + 1, sizeof *plans->sizes);
  if (!plans->views || !plans->data || !plans->sizes) {
    PyErr_NoMemory();
    release_plans(plans);
    return -1;
  }
  for (; plans->held < count; ++plans->held) {
    Py_buffer* view = &plans->views[plans->held];
    if (PyObject_GetBuffer(PyList_GetItem(list, plans->held), view, PyBUF_SIMPLE) < 0) {
      release_plans(plans);
      return -1;
    }
    plans->data[plans->held] = view->buf;
    plans->sizes[plans->held] = (uint64_t)view->len;
  }
  return 0;
}

PyObject* shw_py_plan_merge(PyObject* options, PyObject* plans) {
  shw_merge_options given = SHW_MERGE_OPTIONS_INIT;
  held_plans held;
  if (!PyArg_ParseTuple(options, "iiii", &given.owner, &given.preset, &given.cover,
                        &given.verify_replicas) ||
      hold_plans(plans, &held) < 0)
    return NULL;
  shw_buffer* buffer = NULL;
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status =
      shw_plan_merge_buffers(&given, held.data, held.sizes, (uint64_t)held.held, &buffer, &error);
  Py_END_ALLOW_THREADS release_plans(&held);
  if (status == SHW_OK) return views_of(buffer);
  shw_py_raise(status, error);
  return NULL;
}

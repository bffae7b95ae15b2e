/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes without a copy on the way in or out: buffers are read where the host has them, and parts of
 * a result are views of one buffer of the library, which lives as long as one of them. */

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

/* ---- buffers where they lie ---- */

typedef struct {
  Py_buffer* views;
  const void** data;
  uint64_t* sizes;
  Py_ssize_t count;
} held_list;

static void free_list(held_list* list) {
  while (list->count > 0) PyBuffer_Release(&list->views[--list->count]);
  PyMem_Free(list->views);
  PyMem_Free((void*)list->data);
  PyMem_Free(list->sizes);
}

/* Where the buffers of a list lie; free_list follows, also after -1. */
static int hold_list(PyObject* object, held_list* list) {
  const Py_ssize_t count = PyList_Check(object) ? PyList_Size(object) : -1;
  if (count < 0) {
    PyErr_SetString(PyExc_TypeError, "expected a list of plans");
    return -1;
  }
  list->views = PyMem_Calloc((size_t)count + 1, sizeof *list->views);
  list->data = PyMem_Calloc((size_t)count + 1, sizeof *list->data);
  list->sizes = PyMem_Calloc((size_t)count + 1, sizeof *list->sizes);
  if (!list->views || !list->data || !list->sizes) {
    PyErr_NoMemory();
    return -1;
  }
  for (; list->count < count; ++list->count) {
    Py_buffer* view = &list->views[list->count];
    if (PyObject_GetBuffer(PyList_GetItem(object, list->count), view, PyBUF_SIMPLE) < 0) return -1;
    list->data[list->count] = view->buf;
    list->sizes[list->count] = (uint64_t)view->len;
  }
  return 0;
}

PyObject* shw_py_plan_merge(const shw_merge_options* options, PyObject* plans) {
  held_list held = {0};
  shw_buffer* buffer = NULL;
  shw_error* error = NULL;
  shw_status status = SHW_OK;
  PyObject* views = NULL;
  if (hold_list(plans, &held) == 0) {
    Py_BEGIN_ALLOW_THREADS status = shw_plan_merge_buffers(options, held.data, held.sizes,
                                                           (uint64_t)held.count, &buffer, &error);
    Py_END_ALLOW_THREADS if (status == SHW_OK) views = views_of(buffer);
    else shw_py_raise(status, error);
  }
  free_list(&held);
  return views;
}

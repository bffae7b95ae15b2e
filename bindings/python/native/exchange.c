/* SPDX-License-Identifier: Apache-2.0
 *
 * Exchanges of a load: plans of all ranks at once, and the memory of a round as memoryviews. Each
 * view keeps the exchange alive, so that none points to memory that is gone; the Python layer
 * releases them when their round ends. */
#include "bindings/python/native/native.h"

/* ---- memory of a round ---- */

typedef struct {
  PyObject_HEAD PyObject* exchange; /* the capsule */
  void* data;
  Py_ssize_t size;
  int is_read_only;
  Py_ssize_t exports; /* 1 while a view of it, or one of a view, is not released */
} round_memory;

static PyTypeObject* round_memory_type;

static int round_memory_getbuffer(PyObject* object, Py_buffer* view, int flags) {
  round_memory* memory = (round_memory*)object;
  static char nothing;
  void* data = memory->data ? memory->data : &nothing;
  if (PyBuffer_FillInfo(view, object, data, memory->size, memory->is_read_only, flags) < 0)
    return -1;
  ++memory->exports;
  return 0;
}

static void round_memory_releasebuffer(PyObject* object, Py_buffer* view) {
  (void)view;
  --((round_memory*)object)->exports;
}

static PyObject* round_memory_is_used(PyObject* object, PyObject* nothing) {
  (void)nothing;
  return PyBool_FromLong(((round_memory*)object)->exports != 0);
}

static PyMethodDef round_memory_methods[] = {
    {"is_used", round_memory_is_used, METH_NOARGS, "Whether a view of the memory is not released."},
    {NULL, NULL, 0, NULL}};

static void round_memory_dealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  Py_DECREF(((round_memory*)object)->exchange);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(object);
  Py_DECREF(type);
}

static PyType_Slot round_memory_slots[] = {{Py_tp_dealloc, (void*)round_memory_dealloc},
                                           {Py_bf_getbuffer, (void*)round_memory_getbuffer},
                                           {Py_bf_releasebuffer, (void*)round_memory_releasebuffer},
                                           {Py_tp_methods, round_memory_methods},
                                           {Py_tp_doc, "Memory of a round, behind memoryviews."},
                                           {0, NULL}};
static PyType_Spec round_memory_spec = {
    "shardwright._native._shw_native.RoundMemory", sizeof(round_memory), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, round_memory_slots};

int shw_py_init_exchange(PyObject* module) {
  round_memory_type = (PyTypeObject*)PyType_FromSpec(&round_memory_spec);
  if (!round_memory_type) return -1;
  return PyModule_AddObjectRef(module, "RoundMemory", (PyObject*)round_memory_type);
}

typedef struct {
  void* data;
  uint64_t size;
  const uint64_t* sizes; /* one for each rank */
  int is_read_only;
} rank_parts;

/* One memoryview for each rank. */
static PyObject* views_of(PyObject* exchange, const rank_parts* parts, uint64_t rank_count) {
  round_memory* owner = (round_memory*)PyType_GenericAlloc(round_memory_type, 0);
  if (!owner) return NULL;
  owner->exchange = Py_NewRef(exchange);
  owner->data = parts->data;
  owner->size = (Py_ssize_t)parts->size;
  owner->is_read_only = parts->is_read_only;
  PyObject* whole = PyMemoryView_FromObject((PyObject*)owner);
  PyObject* list = whole ? PyList_New((Py_ssize_t)rank_count) : NULL;
  Py_ssize_t begin = 0;
  for (uint64_t i = 0; list && i < rank_count; ++i) {
    const Py_ssize_t end = begin + (Py_ssize_t)parts->sizes[i];
    PyObject* part = PySequence_GetSlice(whole, begin, end);
    if (!part || PyList_SetItem(list, (Py_ssize_t)i, part) < 0) Py_CLEAR(list);
    begin = end;
  }
  Py_XDECREF(whole);
  Py_DECREF(owner);
  return list;
}

PyObject* shw_py_exchange_begin_round(PyObject* exchange) {
  void* handle = NULL;
  if (shw_py_handle(exchange, "shw_load_exchange", &handle) < 0) return NULL;
  shw_exchange_round round;
  shw_exchange_round_init(&round, sizeof round);
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status = shw_load_exchange_begin_round(handle, &round, &error);
  Py_END_ALLOW_THREADS if (status != SHW_OK) {
    shw_py_raise(status, error);
    return NULL;
  }
  const rank_parts sent = {(void*)(uintptr_t)round.outgoing, round.outgoing_size,
                           round.outgoing_sizes, 1};
  const rank_parts received = {round.incoming, round.incoming_size, round.incoming_sizes, 0};
  PyObject* outgoing = views_of(exchange, &sent, round.rank_count);
  PyObject* incoming = outgoing ? views_of(exchange, &received, round.rank_count) : NULL;
  PyObject* both = incoming ? PyTuple_Pack(2, outgoing, incoming) : NULL;
  Py_XDECREF(outgoing);
  Py_XDECREF(incoming);
  return both;
}

/* ---- plans ---- */

/* Takes the plans: a list of handles. */
static PyObject* plans_of(shw_plan** plans, Py_ssize_t count) {
  PyObject* list = PyList_New(count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!list) {
      shw_plan_release(plans[i]);
      continue;
    }
    PyObject* plan = shw_py_own_plan(plans[i]); /* releases it where it fails */
    if (!plan || PyList_SetItem(list, i, plan) < 0) Py_CLEAR(list);
  }
  return list;
}

PyObject* shw_py_exchange_plans(PyObject* want_lists) {
  void** wants = NULL;
  shw_plan** plans = NULL;
  PyObject* list = NULL;
  if (shw_py_handles(want_lists, "shw_plan", &wants) < 0) goto done;
  const Py_ssize_t count = wants ? PyList_Size(want_lists) : 0;
  plans = PyMem_Calloc((size_t)count + 1, sizeof(*plans));
  if (!plans) {
    PyErr_NoMemory();
    goto done;
  }
  static const shw_plan* const none[1];
  shw_error* error = NULL;
  shw_status status;
  const shw_plan* const* given = wants ? (const shw_plan* const*)(void*)wants : none;
  Py_BEGIN_ALLOW_THREADS status = shw_exchange_plans(given, (uint64_t)count, plans, &error);
  Py_END_ALLOW_THREADS if (status == SHW_OK) list = plans_of(plans, count);
  else shw_py_raise(status, error);
done:
  PyMem_Free(plans);
  PyMem_Free(wants);
  return list;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared parts of the trampolines into Python objects; see host.h. Once the interpreter is going
 * down no callback enters Python any more: taking the GIL then can hang or crash. */
#include "bindings/python/native/host.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

/* Shared by threads on their way into Python, taken alone by a thread that forks. A thread on its
 * way takes a lock of the interpreter before it has the GIL; a child that is forked meanwhile waits
 * for that lock for ever (CPython before 3.12). */
static pthread_rwlock_t on_the_way = PTHREAD_RWLOCK_INITIALIZER;

int shw_py_enter(shw_py_stay* stay) {
  if (shw_py_finalizing()) return 0;
  stay->inside = 1; /* first: the interpreter may end the thread while it waits for its turn */
  if (PyGILState_GetThisThreadState() != NULL) { /* needs no lock but the GIL */
    stay->state = PyGILState_Ensure();
    return 1;
  }
  pthread_rwlock_rdlock(&on_the_way);
  stay->state = PyGILState_Ensure();
  pthread_rwlock_unlock(&on_the_way);
  return 1;
}

PyObject* shw_py_fork_begins(void) {
  Py_BEGIN_ALLOW_THREADS; /* who is on the way needs the GIL to arrive */
  pthread_rwlock_wrlock(&on_the_way);
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

PyObject* shw_py_fork_ends(void) {
  pthread_rwlock_unlock(&on_the_way);
  Py_RETURN_NONE;
}

PyObject* shw_py_fork_ends_in_child(void) {
  static const pthread_rwlock_t fresh = PTHREAD_RWLOCK_INITIALIZER;
  on_the_way = fresh; /* nobody else is here */
  Py_RETURN_NONE;
}

void shw_py_exit(shw_py_stay* stay) {
  PyGILState_Release(stay->state);
  stay->inside = 0;
}

void shw_py_hold(shw_py_stay* stay) {
  while (stay->inside) pause();
}

shw_status shw_py_leave(shw_py_stay* stay, PyObject* result, shw_error** err) {
  const shw_status status = result ? SHW_OK : shw_py_status_of_exception(err);
  Py_XDECREF(result);
  shw_py_exit(stay);
  return status;
}

PyObject* shw_py_call(PyObject* object, const char* method, const char* format, ...) {
  va_list values;
  va_start(values, format);
  PyObject* arguments = Py_VaBuildValue(format, values); /* first: it takes over what it is given */
  va_end(values);
  PyObject* bound = arguments ? shw_py_attribute(object, method) : NULL;
  PyObject* result = bound ? PyObject_CallObject(bound, arguments) : NULL;
  Py_XDECREF(bound);
  Py_XDECREF(arguments);
  return result;
}

/* ---- memory that is lent for a call ---- */

/* Stands behind all views of the memory: slices and casts share one export with the view that they
 * were made of. */
typedef struct {
  PyObject_HEAD void* data;
  Py_ssize_t size;
  int writable;
  int exports;
} lent_memory;

static PyTypeObject* lent_type;

static int lent_getbuffer(PyObject* object, Py_buffer* view, int flags) {
  lent_memory* self = (lent_memory*)object;
  if (PyBuffer_FillInfo(view, object, self->data, self->size, !self->writable, flags) < 0)
    return -1;
  ++self->exports;
  return 0;
}

static void lent_releasebuffer(PyObject* object, Py_buffer* view) {
  (void)view;
  --((lent_memory*)object)->exports;
}

static void lent_dealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(object);
  Py_DECREF(type);
}

static PyType_Slot lent_slots[] = {{Py_tp_dealloc, (void*)lent_dealloc},
                                   {Py_bf_getbuffer, (void*)lent_getbuffer},
                                   {Py_bf_releasebuffer, (void*)lent_releasebuffer},
                                   {Py_tp_doc, "Memory of the library that a callback may use."},
                                   {0, NULL}};
static PyType_Spec lent_spec = {"shardwright._native._shw_native.LentMemory", sizeof(lent_memory),
                                0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                lent_slots};

int shw_py_init_hosts(PyObject* module) {
  lent_type = (PyTypeObject*)PyType_FromSpec(&lent_spec);
  if (!lent_type) return -1;
  return PyModule_AddObjectRef(module, "LentMemory", (PyObject*)lent_type);
}

PyObject* shw_py_lend(const void* data, uint64_t size, int writable) {
  static char nothing[1];
  lent_memory* lent = (lent_memory*)PyType_GenericAlloc(lent_type, 0);
  if (!lent) return NULL;
  lent->data = data ? (char*)(uintptr_t)data : nothing;
  lent->size = (Py_ssize_t)size;
  lent->writable = writable;
  PyObject* view = PyMemoryView_FromObject((PyObject*)lent);
  Py_DECREF((PyObject*)lent);
  return view;
}

PyObject* shw_py_lend_numbers(int64_t* values, uint64_t count) {
  PyObject* bytes = shw_py_lend(values, count * sizeof *values, 1);
  PyObject* numbers = bytes ? shw_py_call(bytes, "cast", "(s)", "q") : NULL;
  PyObject* released = bytes ? shw_py_call(bytes, "release", "()") : NULL; /* numbers stay */
  Py_XDECREF(bytes);
  if (bytes && !released) Py_CLEAR(numbers);
  Py_XDECREF(released);
  return numbers;
}

/* Ends a view; 1 when it, or what was made of it, is in use still, -1 with an exception. */
static int end_view(PyObject* view) {
  lent_memory* lent = (lent_memory*)shw_py_attribute(view, "obj");
  if (!lent) PyErr_Clear(); /* the callback has released it */
  PyObject* released = shw_py_call(view, "release", "()");
  int kept = released ? lent && lent->exports > 0 : PyErr_ExceptionMatches(PyExc_BufferError);
  if (kept)
    PyErr_Clear();
  else if (!released)
    kept = -1;
  /* A view that is in use still is never given back: CPython 3.11 follows a null pointer where its
   * collector clears such a view before that what was made of it. */
  if (released) Py_DECREF(view);
  Py_XDECREF(released);
  Py_XDECREF((PyObject*)lent);
  return kept;
}

PyObject* shw_py_take_back(PyObject* view, PyObject* result) {
  if (!view) return result;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const int kept = end_view(view);
  if (type) { /* what the callback raised comes first */
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    return result;
  }
  if (kept == 1)
    PyErr_SetString(PyExc_BufferError,
                    "a callback kept a view of memory that is valid during the call only");
  if (kept != 0) Py_CLEAR(result);
  return result;
}

shw_py_host* shw_py_host_create(PyObject* object, const char* fallback_name) {
  shw_py_host* host = malloc(sizeof *host);
  if (!host) {
    PyErr_NoMemory();
    return NULL;
  }
  PyObject* text = shw_py_attribute(object, "name");
  if (!text) PyErr_Clear();
  host->name = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8String(text)
                                             : PyBytes_FromString(fallback_name);
  Py_XDECREF(text);
  if (!host->name) {
    free(host);
    return NULL;
  }
  Py_INCREF(object);
  host->object = object;
  host->ranks = 0;
  return host;
}

void shw_py_host_release(void* user) {
  shw_py_host* host = user;
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return; /* the interpreter takes its objects with it */
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace); /* the reason for the release may be on its way */
  PyObject* closed = shw_py_call(host->object, "close", "()");
  if (!closed) PyErr_Clear(); /* close is optional, and nobody is left to hear of its failure */
  Py_XDECREF(closed);
  Py_DECREF(host->object);
  Py_DECREF(host->name);
  PyErr_Restore(type, value, trace);
  shw_py_exit(&stay);
  free(host);
}

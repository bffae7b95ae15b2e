/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared parts of the trampolines into Python objects; see host.h. Once the interpreter is going
 * down no callback enters Python any more: taking the GIL then can hang or crash. */
#include "bindings/python/native/host.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

int shw_py_enter(shw_py_stay* stay) {
  if (shw_py_finalizing()) return 0;
  stay->inside = 1; /* first: the interpreter may end the thread while it waits for its turn */
  stay->state = PyGILState_Ensure();
  return 1;
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

PyObject* shw_py_lend(const void* data, uint64_t size, int writable) {
  static char nothing[1];
  return PyMemoryView_FromMemory(data ? (char*)(uintptr_t)data : nothing, (Py_ssize_t)size,
                                 writable ? PyBUF_WRITE : PyBUF_READ);
}

PyObject* shw_py_take_back(PyObject* view, PyObject* result) {
  if (!view) return result;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* released = shw_py_call(view, "release", "()");
  Py_DECREF(view);
  if (!released && !type) {
    PyErr_Clear();
    PyErr_SetString(PyExc_BufferError,
                    "a callback kept a view of memory that is valid during the call only");
    Py_CLEAR(result);
    return NULL;
  }
  if (!released) PyErr_Clear();
  Py_XDECREF(released);
  if (type) PyErr_Restore(type, value, trace);
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

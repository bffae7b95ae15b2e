/* SPDX-License-Identifier: Apache-2.0
 *
 * What the callbacks of host storages and host collectives share: entering Python from any thread, views of native
 * memory that end with the call, and the way back from an exception to a status. */
#ifndef SHW_PY_HOST_H
#define SHW_PY_HOST_H

#include "bindings/python/native/native.h"

/* Enters Python; 0 when it is shutting down, then nothing may be called. */
int shw_py_enter(PyGILState_STATE* gil);
/* Leaves Python with the status of a method: that of the exception that is set where `result` is NULL. Takes `result`. */
shw_status shw_py_leave(PyGILState_STATE gil, PyObject* result, shw_error** err);
/* Result of a method; `format` gives a tuple of the arguments, as Py_BuildValue takes it. */
PyObject* shw_py_call(PyObject* object, const char* method, const char* format, ...);
/* A memoryview over native bytes that must not outlive the call. */
PyObject* shw_py_lend(const void* data, uint64_t size, int writable);
/* Ends a view (NULL is fine); when somebody kept it, `result` gives way to an exception. Gives `result` back. */
PyObject* shw_py_take_back(PyObject* view, PyObject* result);
/* An object with a C table: what the table's user points to. */
typedef struct {
  PyObject* object;
  PyObject* name; /* bytes */
  int32_t ranks;  /* of a collective */
} shw_py_host;
shw_py_host* shw_py_host_create(PyObject* object, const char* fallback_name);
void shw_py_host_release(void* user);

#endif

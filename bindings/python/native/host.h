/* SPDX-License-Identifier: Apache-2.0
 *
 * What the callbacks of host storages and host collectives share: entering Python from any thread,
 * views of native memory that end with the call, and the way back from an exception to a status. */
#ifndef SHW_PY_HOST_H
#define SHW_PY_HOST_H

#include "bindings/python/native/native.h"

/* A thread's stay in Python. An interpreter that goes down ends the threads that want its lock
 * (CPython before 3.14) by unwinding them, which the library's threads cannot be: such a thread is
 * held where it is until the process ends. */
typedef struct {
  PyGILState_STATE state;
  int inside;
} shw_py_stay;
#define SHW_PY_STAY __attribute__((cleanup(shw_py_hold))) shw_py_stay
void shw_py_hold(shw_py_stay* stay);
/* Enters Python; 0 when it is shutting down, then nothing may be called. */
int shw_py_enter(shw_py_stay* stay);
void shw_py_exit(shw_py_stay* stay);
/* Leaves Python with the status of a method: that of the exception that is set where `result` is
 * NULL. Takes `result`. */
shw_status shw_py_leave(shw_py_stay* stay, PyObject* result, shw_error** err);
/* Result of a method; `format` gives a tuple of the arguments, as Py_BuildValue takes it. */
PyObject* shw_py_call(PyObject* object, const char* method, const char* format, ...);
/* A memoryview over native bytes that must not outlive the call. */
PyObject* shw_py_lend(const void* data, uint64_t size, int writable);
/* The same of numbers, with items. */
PyObject* shw_py_lend_numbers(int64_t* values, uint64_t count);
/* Ends a view (NULL is fine); when somebody kept it or a part of it, `result` gives way to an
 * exception; a view that is in use lives on to the end of the process. Gives `result` back. */
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

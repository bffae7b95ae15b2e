/* SPDX-License-Identifier: Apache-2.0
 *
 * Context and jobs. Waits run in slices without the GIL; between two slices signal handlers get
 * their turn, and one that raises (Ctrl-C) cancels the job, which is waited to its end before the
 * exception comes out. */
#include "bindings/python/native/native.h"

#include <time.h>

#include "bindings/native/job_ends.h"

PyObject* shw_py_context_create(PyObject* threads, PyObject* memory_budget, PyObject* log_level,
                                PyObject* texts) {
  shw_context_options options;
  shw_context_options_init(&options, sizeof options);
  options.threads = (uint32_t)PyLong_AsUnsignedLong(threads);
  options.memory_budget = PyLong_AsUnsignedLongLong(memory_budget);
  options.log_level = (int32_t)PyLong_AsLong(log_level);
  if (PyErr_Occurred()) return NULL;
  uint64_t size = 0;
  PyObject* const plugin_path = PyTuple_GetItem(texts, 0);
  PyObject* const machine = plugin_path ? PyTuple_GetItem(texts, 1) : NULL;
  if (!machine || shw_py_text(plugin_path, &options.plugin_path, &size) < 0) return NULL;
  if (shw_py_text(machine, &options.machine, &size) < 0) return NULL;
  if (shw_py_no_nul(options.machine, size, "machine") < 0) return NULL;
  if (options.log_level < SHW_LOG_OFF) options.log = shw_py_log_put;
  shw_context* context = NULL;
  shw_error* error = NULL;
  const shw_status status = shw_context_create(&options, &context, &error);
  if (status != SHW_OK) {
    shw_py_raise(status, error);
    return NULL;
  }
  return shw_py_own_context(context);
}

PyObject* shw_py_context_shutdown(PyObject* capsule, PyObject* timeout_ns) {
  void* context = NULL;
  const long long limit = PyLong_AsLongLong(timeout_ns);
  if (PyErr_Occurred() || shw_py_handle(capsule, "shw_context", &context) < 0) return NULL;
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status = shw_context_shutdown(context, limit, &error);
  Py_END_ALLOW_THREADS if (status == SHW_PENDING) Py_RETURN_FALSE;
  if (status == SHW_OK) Py_RETURN_TRUE;
  shw_py_raise(status, error);
  return NULL;
}

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static shw_status wait_slice(shw_job* job, int staged, int64_t slice_ns, shw_error** error) {
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status =
      staged ? shw_job_wait_staged(job, slice_ns, error) : shw_job_wait(job, slice_ns, error);
  Py_END_ALLOW_THREADS return status;
}

/* After a signal handler raised: the job ends, and its own outcome gives way to that exception. */
static PyObject* cancel_and_leave(shw_job* job) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  shw_job_cancel(job);
  shw_error* error = NULL;
  (void)wait_slice(job, 0, -1, &error);
  shw_error_release(error);
  PyErr_Restore(type, value, trace);
  return NULL;
}

PyObject* shw_py_job_wait(PyObject* capsule, PyObject* timeout_ns, PyObject* staged) {
  void* job = NULL;
  const long long limit = PyLong_AsLongLong(timeout_ns);
  const int until_staged = PyObject_IsTrue(staged);
  if (PyErr_Occurred() || shw_py_handle(capsule, "shw_job", &job) < 0) return NULL;
  const int64_t begin = now_ns();
  for (;;) {
    int64_t slice = SHW_PY_SLICE_NS;
    const int64_t left = limit < 0 ? slice : limit - (now_ns() - begin);
    if (left < slice) slice = left < 0 ? 0 : left;
    shw_error* error = NULL;
    const shw_status status = wait_slice(job, until_staged, slice, &error);
    if (status == SHW_OK) Py_RETURN_TRUE;
    if (status != SHW_PENDING) {
      shw_py_raise(status, error);
      return NULL;
    }
    if (PyErr_CheckSignals() < 0) return cancel_and_leave(job);
    if (limit >= 0 && now_ns() - begin >= limit) Py_RETURN_FALSE;
  }
}

static shw_status wait_work(shw_work* work, int64_t slice_ns, shw_error** error) {
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status =
      slice_ns == 0 ? shw_work_poll(work, error) : shw_work_wait(work, slice_ns, error);
  Py_END_ALLOW_THREADS return status;
}

PyObject* shw_py_work_wait(PyObject* capsule, PyObject* timeout_ns) {
  void* work = NULL;
  const long long limit = PyLong_AsLongLong(timeout_ns);
  if (PyErr_Occurred() || shw_py_handle(capsule, "shw_work", &work) < 0) return NULL;
  const int64_t begin = now_ns();
  for (;;) {
    const int64_t left = limit < 0 ? SHW_PY_SLICE_NS : limit - (now_ns() - begin);
    const int64_t slice = left > SHW_PY_SLICE_NS ? SHW_PY_SLICE_NS : left < 0 ? 0 : left;
    shw_error* error = NULL;
    const shw_status status = wait_work(work, slice, &error);
    if (status == SHW_OK) Py_RETURN_TRUE;
    if (status != SHW_PENDING) {
      shw_py_raise(status, error);
      return NULL;
    }
    if (PyErr_CheckSignals() < 0) return NULL;
    if (limit >= 0 && now_ns() - begin >= limit) Py_RETURN_FALSE;
  }
}

PyObject* shw_py_job_watch(PyObject* capsule) {
  void* job = NULL;
  if (shw_py_handle(capsule, "shw_job", &job) < 0) return NULL;
  return PyBool_FromLong(shw_watch_job(job));
}

PyObject* shw_py_job_ends_wait(void) {
  Py_BEGIN_ALLOW_THREADS shw_wait_for_job_ends();
  Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Statuses become exceptions through errors.py, and exceptions of callbacks become statuses. The
 * two Python functions are set once at import. Thread rule: GIL held, except for
 * shw_py_finalizing. */
#include "bindings/python/native/native.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static PyObject* error_factory; /* (code, message, details, retryable, cause) -> exception */
static PyObject*
    error_translator; /* exception -> (code, message bytes, [(key bytes, value bytes), ...]) */
static atomic_int finalizing;

int shw_py_finalizing(void) {
  return atomic_load_explicit(&finalizing, memory_order_acquire);
}

PyObject* shw_py_set_finalizing(void) {
  atomic_store_explicit(&finalizing, 1, memory_order_release);
  Py_RETURN_NONE;
}

PyObject* shw_py_leak(PyObject* object) {
  Py_INCREF(object);
  Py_RETURN_NONE;
}

PyObject* shw_py_versions(void) {
  uint32_t major = 0, minor = 0;
  shw_abi_version(&major, &minor);
  return Py_BuildValue("(iikks)", SHW_ABI_MAJOR, SHW_ABI_MINOR, (unsigned long)major,
                       (unsigned long)minor, shw_version_string());
}

PyObject* shw_py_set_error_hooks(PyObject* factory, PyObject* translator) {
  Py_INCREF(factory);
  Py_INCREF(translator);
  Py_XDECREF(error_factory);
  Py_XDECREF(error_translator);
  error_factory = factory;
  error_translator = translator;
  Py_RETURN_NONE;
}

static PyObject* details_of(const shw_error* error) {
  PyObject* list = PyList_New(0);
  const uint64_t count = error ? shw_error_detail_count(error) : 0;
  for (uint64_t i = 0; list && i < count; ++i) {
    shw_error_detail detail;
    if (shw_error_detail_at(error, i, &detail) != SHW_OK) break;
    PyObject* value =
        PyUnicode_DecodeUTF8(detail.value, (Py_ssize_t)detail.value_size, "backslashreplace");
    PyObject* pair = value ? Py_BuildValue("(sN)", detail.key, value) : NULL;
    if (!pair || PyList_Append(list, pair) < 0) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  return list;
}

/* New exception object of an error and its causes, or NULL with another exception set. */
static PyObject* exception_of(shw_status status, const shw_error* error) {
  uint64_t size = 0;
  const char* text = error ? shw_error_message(error, &size) : "";
  PyObject* cause = NULL;
  const shw_error* below = error ? shw_error_cause(error) : NULL;
  if (below) {
    cause = exception_of(shw_error_code(below), below);
    if (!cause) return NULL;
  }
  PyObject* message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "backslashreplace");
  PyObject* details = details_of(error);
  PyObject* made = NULL;
  if (message && details && error_factory) {
    const int retryable = error ? shw_error_is_retryable(error) : 0;
    made = PyObject_CallFunction(error_factory, "iOOiO", (int)status, message, details, retryable,
                                 cause ? cause : Py_None);
  } else if (!PyErr_Occurred()) {
    PyErr_Format(PyExc_RuntimeError, "%s: %s", shw_status_name(status), text);
  }
  Py_XDECREF(message);
  Py_XDECREF(details);
  Py_XDECREF(cause);
  return made;
}

void shw_py_raise(shw_status status, shw_error* error) {
  PyObject* made = exception_of(status, error);
  shw_error_release(error);
  if (!made) return;
  PyErr_SetObject((PyObject*)Py_TYPE(made), made);
  Py_DECREF(made);
}

PyObject* shw_py_fail(shw_status status, const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  const int size = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  shw_error* error = NULL;
  const uint64_t kept = size < 0 ? 0 : size < (int)sizeof text ? (uint64_t)size : sizeof text - 1;
  (void)shw_error_create(status, text, kept, NULL, 0, NULL, &error);
  shw_py_raise(status, error);
  return NULL;
}

#define DETAILS_MAX 16

/* Error object of what the translator gave; `translated` keeps the texts alive. */
static shw_status error_of_translation(PyObject* translated, shw_error** err) {
  int code = SHW_HOST_EXCEPTION;
  const char* message = "";
  Py_ssize_t size = 0;
  PyObject* list = NULL;
  if (!PyArg_ParseTuple(translated, "iy#O", &code, &message, &size, &list))
    return SHW_HOST_EXCEPTION;
  shw_error_detail details[DETAILS_MAX];
  uint64_t count = 0;
  const Py_ssize_t length = PyList_Size(list);
  for (Py_ssize_t i = 0; i < length && count < DETAILS_MAX; ++i) {
    Py_ssize_t value_size = 0;
    if (!PyArg_ParseTuple(PyList_GetItem(list, i), "yy#", &details[count].key,
                          &details[count].value, &value_size)) {
      return SHW_HOST_EXCEPTION;
    }
    details[count++].value_size = (uint64_t)value_size;
  }
  if (err && !*err)
    (void)shw_error_create(code, message, (uint64_t)size, details, count, NULL, err);
  return code;
}

shw_status shw_py_status_of_exception(shw_error** err) {
  PyObject *type = NULL, *value = NULL, *trace = NULL;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace && value) PyException_SetTraceback(value, trace);
  shw_status status = SHW_HOST_EXCEPTION;
  PyObject* translated = value && error_translator
                             ? PyObject_CallFunctionObjArgs(error_translator, value, NULL)
                             : NULL;
  if (translated) status = error_of_translation(translated, err);
  PyErr_Clear();
  Py_XDECREF(translated);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return status == SHW_OK ? SHW_HOST_EXCEPTION : status;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of calls: texts, lists of bytes, numbers or handles. Texts stay borrowed from the
 * Python objects, which the caller holds for the length of the call. */
#include "bindings/python/native/native.h"

#include <string.h>

int shw_py_text(PyObject* object, char const** data, uint64_t* size) {
  Py_ssize_t length = 0;
  *data = NULL;
  *size = 0;
  if (object == Py_None) return 0;
  if (PyUnicode_Check(object)) {
    *data = PyUnicode_AsUTF8AndSize(object, &length);
  } else if (PyBytes_Check(object)) {
    char* bytes = NULL;
    if (PyBytes_AsStringAndSize(object, &bytes, &length) == 0) *data = bytes;
  } else {
    PyErr_SetString(PyExc_TypeError, "expected text or bytes");
  }
  *size = (uint64_t)length;
  if (!*data && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
    PyErr_Clear();
    shw_py_fail(SHW_INVALID_ARGUMENT,
                "a text holds half of a surrogate pair and cannot be written as UTF-8");
  }
  return *data ? 0 : -1;
}

int shw_py_no_nul(const char* data, uint64_t size, const char* parameter) {
  if (!data || memchr(data, 0, size) == NULL) return 0;
  shw_py_fail(SHW_INVALID_ARGUMENT, "parameter %s holds a NUL character", parameter);
  return -1;
}

void shw_py_blob_free(shw_py_blob* blob) {
  PyMem_Free(blob->data);
  PyMem_Free(blob->offsets);
  blob->data = NULL;
  blob->offsets = NULL;
}

/* Sizes of the parts as offsets from one to the next; buffers other than bytes are held in
 * `views`. */
static int measure(PyObject* list, shw_py_blob* blob, Py_buffer* views) {
  for (uint64_t i = 0; i < blob->count; ++i) {
    PyObject* part = PyList_GetItem(list, (Py_ssize_t)i);
    if (!PyBytes_CheckExact(part) && PyObject_GetBuffer(part, &views[i], PyBUF_SIMPLE) < 0)
      return -1;
    const Py_ssize_t size = PyBytes_CheckExact(part) ? PyBytes_Size(part) : views[i].len;
    blob->offsets[i + 1] = blob->offsets[i] + (uint64_t)size;
  }
  return 0;
}

static int join(PyObject* list, shw_py_blob* blob, Py_buffer* views) {
  if (measure(list, blob, views) < 0) return -1;
  blob->data = PyMem_Malloc(blob->offsets[blob->count] + 1);
  if (!blob->data) {
    PyErr_NoMemory();
    return -1;
  }
  for (uint64_t i = 0; i < blob->count; ++i) {
    const char* part = views && views[i].obj
                           ? views[i].buf
                           : PyBytes_AsString(PyList_GetItem(list, (Py_ssize_t)i));
    memcpy(blob->data + blob->offsets[i], part, blob->offsets[i + 1] - blob->offsets[i]);
  }
  return 0;
}

int shw_py_join(PyObject* list, shw_py_blob* blob) {
  const Py_ssize_t count = PyList_Check(list) ? PyList_Size(list) : -1;
  if (count < 0) {
    PyErr_SetString(PyExc_TypeError, "expected a list of bytes");
    return -1;
  }
  blob->count = (uint64_t)count;
  blob->offsets = PyMem_Calloc((size_t)count + 1, sizeof *blob->offsets);
  int plain = blob->offsets != NULL;
  for (Py_ssize_t i = 0; plain && i < count; ++i)
    plain = PyBytes_CheckExact(PyList_GetItem(list, i));
  Py_buffer* views = plain ? NULL : PyMem_Calloc((size_t)count + 1, sizeof *views);
  int failed = !blob->offsets || (!plain && !views);
  if (failed)
    PyErr_NoMemory();
  else
    failed = join(list, blob, views) < 0;
  for (Py_ssize_t i = 0; views && i < count; ++i) PyBuffer_Release(&views[i]);
  PyMem_Free(views);
  if (failed) shw_py_blob_free(blob);
  return failed ? -1 : 0;
}

int shw_py_handles(PyObject* list, const char* name, void*** out) {
  *out = NULL;
  if (list == Py_None) return 0;
  const Py_ssize_t count = PyList_Size(list);
  if (count < 0) return -1;
  *out = PyMem_Calloc((size_t)count + 1, sizeof **out);
  if (!*out) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (shw_py_handle(PyList_GetItem(list, i), name, &(*out)[i]) < 0) return -1;
  }
  return 0;
}

int shw_py_indices(PyObject* list, shw_py_blob* blob) {
  const Py_ssize_t count = PyList_Check(list) ? PyList_Size(list) : -1;
  if (count < 0) {
    PyErr_SetString(PyExc_TypeError, "expected a list of numbers");
    return -1;
  }
  blob->count = (uint64_t)count;
  blob->offsets = PyMem_Calloc((size_t)count + 1, sizeof *blob->offsets);
  if (!blob->offsets) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    blob->offsets[i] = PyLong_AsUnsignedLongLong(PyList_GetItem(list, i));
    if (PyErr_Occurred()) {
      shw_py_blob_free(blob);
      return -1;
    }
  }
  return 0;
}

PyObject* shw_py_parts(shw_buffer* buffer) {
  const uint64_t count = shw_buffer_part_count(buffer);
  PyObject* list = PyList_New((Py_ssize_t)count);
  for (uint64_t i = 0; list && i < count; ++i) {
    PyObject* part = PyBytes_FromStringAndSize(shw_buffer_part_data(buffer, i),
                                               (Py_ssize_t)shw_buffer_part_size(buffer, i));
    if (!part || PyList_SetItem(list, (Py_ssize_t)i, part) < 0) Py_CLEAR(list);
  }
  shw_buffer_release(buffer);
  return list;
}

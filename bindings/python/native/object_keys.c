/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of byte objects that are cells of grids. */
#include "bindings/python/native/native.h"

PyObject* shw_py_object_key(PyObject* key, PyObject* index, PyObject* shape) {
  int64_t cell[SHW_PY_RANK_MAX], extents[SHW_PY_RANK_MAX];
  char* text = NULL;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(key, &text, &size) < 0) return NULL;
  const Py_ssize_t axes = shw_py_int64s(index, cell, SHW_PY_RANK_MAX);
  const Py_ssize_t counts = axes < 0 ? -1 : shw_py_int64s(shape, extents, SHW_PY_RANK_MAX);
  if (counts < 0) return NULL;
  if (axes != counts) {
    return shw_py_fail(SHW_INVALID_ARGUMENT, "%lld indices in a grid of %lld axes", (long long)axes,
                       (long long)counts);
  }
  shw_buffer* made = NULL;
  shw_error* error = NULL;
  const shw_status status =
      shw_object_key(text, (uint64_t)size, cell, extents, (int32_t)axes, &made, &error);
  if (status != SHW_OK) {
    shw_py_raise(status, error);
    return NULL;
  }
  PyObject* name =
      PyBytes_FromStringAndSize(shw_buffer_data(made), (Py_ssize_t)shw_buffer_size(made));
  shw_buffer_release(made);
  return name;
}

PyObject* shw_py_object_key_parse(PyObject* name) {
  int64_t values[2 * SHW_PY_RANK_MAX];
  char* text = NULL;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(name, &text, &size) < 0) return NULL;
  uint64_t count = 0, key_size = 0;
  shw_error* error = NULL;
  const shw_status status = shw_object_key_parse(text, (uint64_t)size, values, 2 * SHW_PY_RANK_MAX,
                                                 &count, &key_size, &error);
  if (status != SHW_OK) {
    shw_py_raise(status, error);
    return NULL;
  }
  const Py_ssize_t axes = (Py_ssize_t)count / 2;
  return Py_BuildValue("(y#NN)", text, (Py_ssize_t)key_size, shw_py_int_tuple(values, axes),
                       shw_py_int_tuple(values + axes, axes));
}

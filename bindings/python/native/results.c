/* SPDX-License-Identifier: Apache-2.0
 *
 * Small calls whose arguments or results are arrays. */
#include "bindings/python/native/structs.h"

#include <stdlib.h>
#include <string.h>

/* What a call that failed gives: NULL with the exception set. */
static PyObject* failed(shw_status status, shw_error* error) {
  shw_py_raise(status, error);
  return NULL;
}

Py_ssize_t shw_py_int64s(PyObject* sequence, int64_t* values, Py_ssize_t capacity) {
  const Py_ssize_t count = PySequence_Size(sequence);
  if (count < 0) return -1;
  if (count > capacity) {
    shw_py_fail(SHW_INVALID_ARGUMENT, "%lld values where at most %lld fit", (long long)count,
                (long long)capacity);
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PySequence_GetItem(sequence, i);
    values[i] = item ? PyLong_AsLongLong(item) : -1;
    Py_XDECREF(item);
    if (PyErr_Occurred()) {
      if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        shw_py_fail(SHW_INVALID_ARGUMENT, "value %lld of a shape or box does not fit into 63 bits",
                    (long long)i);
      }
      return -1;
    }
  }
  return count;
}

PyObject* shw_py_plan_bytes(PyObject* capsule) {
  void* plan = NULL;
  if (shw_py_handle(capsule, "shw_plan", &plan) < 0) return NULL;
  return PyBytes_FromStringAndSize(shw_plan_data(plan), (Py_ssize_t)shw_plan_size(plan));
}

PyObject* shw_py_plan_items(PyObject* capsule) {
  void* plan = NULL;
  if (shw_py_handle(capsule, "shw_plan", &plan) < 0) return NULL;
  const uint64_t count = shw_plan_item_count(plan);
  PyObject* list = PyList_New((Py_ssize_t)count);
  for (uint64_t i = 0; list && i < count; ++i) {
    shw_plan_item item;
    shw_plan_item_init(&item, sizeof item);
    shw_error* error = NULL;
    const shw_status status = shw_plan_item_at(plan, i, &item, &error);
    if (status != SHW_OK) {
      Py_DECREF(list);
      return failed(status, error);
    }
    PyObject* row = shw_py_struct_write(&shw_plan_item_table, &item);
    if (!row || PyList_SetItem(list, (Py_ssize_t)i, row) < 0) Py_CLEAR(list);
  }
  return list;
}

/* ---- states ---- */

/* (content type, bytes) of an object of a state. */
PyObject* shw_py_state_object(PyObject* capsule, PyObject* index_object) {
  void* state = NULL;
  const unsigned long long index = PyLong_AsUnsignedLongLong(index_object);
  if (PyErr_Occurred() || shw_py_handle(capsule, "shw_state", &state) < 0) return NULL;
  uint64_t type_size = 0, size = 0;
  const char* type = shw_state_object_content_type(state, index, &type_size);
  const void* data = shw_state_object_data(state, index, &size);
  return Py_BuildValue("(s#y#)", type, (Py_ssize_t)type_size, data ? data : "", (Py_ssize_t)size);
}

PyObject* shw_py_state_names(PyObject* capsule) {
  void* state = NULL;
  if (shw_py_handle(capsule, "shw_state", &state) < 0) return NULL;
  const uint64_t count = shw_state_tensor_count(state);
  PyObject* list = PyList_New((Py_ssize_t)count);
  for (uint64_t i = 0; list && i < count; ++i) {
    uint64_t size = 0;
    const char* name = shw_state_tensor_name(state, i, &size);
    PyObject* text = PyUnicode_DecodeUTF8(name, (Py_ssize_t)size, "strict");
    if (!text || PyList_SetItem(list, (Py_ssize_t)i, text) < 0) Py_CLEAR(list);
  }
  return list;
}

/* ---- checkpoints ---- */

static PyObject* tensor_row(void* checkpoint, uint64_t index, const shw_tensor_info* t) {
  PyObject* shape = shw_py_int_tuple(shw_checkpoint_tensor_shape(checkpoint, index), t->ndim);
  if (!shape) return NULL;
  return Py_BuildValue("(NsN)", shw_py_struct_write(&shw_tensor_info_table, t),
                       shw_dtype_name(t->dtype), shape);
}

/* One tuple per tensor: (shw_tensor_info, dtype name, shape). */
PyObject* shw_py_checkpoint_tensors(PyObject* capsule, PyObject* first_object,
                                    PyObject* count_object) {
  void* checkpoint = NULL;
  const unsigned long long first = PyLong_AsUnsignedLongLong(first_object);
  const unsigned long long count = PyLong_AsUnsignedLongLong(count_object);
  if (PyErr_Occurred() || shw_py_handle(capsule, "shw_checkpoint", &checkpoint) < 0) return NULL;
  shw_tensor_info* infos = calloc((size_t)count + 1, sizeof *infos);
  if (!infos) return PyErr_NoMemory();
  for (uint64_t i = 0; i < count; ++i) shw_tensor_info_init(&infos[i], sizeof *infos);
  shw_error* error = NULL;
  const shw_status status =
      count ? shw_checkpoint_tensor_infos(checkpoint, first, count, infos, &error) : SHW_OK;
  PyObject* list = status == SHW_OK ? PyList_New((Py_ssize_t)count) : failed(status, error);
  for (uint64_t i = 0; list && i < count; ++i) {
    PyObject* row = tensor_row(checkpoint, first + i, &infos[i]);
    if (!row || PyList_SetItem(list, (Py_ssize_t)i, row) < 0) Py_CLEAR(list);
  }
  free(infos);
  return list;
}

static PyObject* chunk_row(void* checkpoint, uint64_t index, const shw_chunk_info* info) {
  int64_t box[2 * SHW_PY_RANK_MAX];
  uint64_t size = 0;
  shw_error* error = NULL;
  const shw_status status =
      shw_checkpoint_chunk_box(checkpoint, index, box, 2 * SHW_PY_RANK_MAX, &size, &error);
  if (status != SHW_OK) return failed(status, error);
  const Py_ssize_t ndim = (Py_ssize_t)(size / 2);
  return Py_BuildValue("(NNN)", shw_py_struct_write(&shw_chunk_info_table, info),
                       shw_py_int_tuple(box, ndim), shw_py_int_tuple(box + ndim, ndim));
}

/* One tuple per chunk: (shw_chunk_info, offsets, sizes). */
PyObject* shw_py_checkpoint_chunks(PyObject* capsule, PyObject* first_object,
                                   PyObject* count_object) {
  void* checkpoint = NULL;
  const unsigned long long first = PyLong_AsUnsignedLongLong(first_object);
  const unsigned long long count = PyLong_AsUnsignedLongLong(count_object);
  if (PyErr_Occurred() || shw_py_handle(capsule, "shw_checkpoint", &checkpoint) < 0) return NULL;
  shw_chunk_info* infos = calloc((size_t)count + 1, sizeof *infos);
  if (!infos) return PyErr_NoMemory();
  for (uint64_t i = 0; i < count; ++i) shw_chunk_info_init(&infos[i], sizeof *infos);
  shw_error* error = NULL;
  const shw_status status =
      count ? shw_checkpoint_chunk_infos(checkpoint, first, count, infos, &error) : SHW_OK;
  PyObject* list = status == SHW_OK ? PyList_New((Py_ssize_t)count) : failed(status, error);
  for (uint64_t i = 0; list && i < count; ++i) {
    PyObject* row = chunk_row(checkpoint, first + i, &infos[i]);
    if (!row || PyList_SetItem(list, (Py_ssize_t)i, row) < 0) Py_CLEAR(list);
  }
  free(infos);
  return list;
}

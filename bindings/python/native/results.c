/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs of the C interface as tuples, and small calls whose arguments or results are arrays. */
#include "bindings/python/native/native.h"

#include <stdlib.h>
#include <string.h>

#define RANK_MAX 64

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

int shw_py_int32s(PyObject* sequence, int32_t** out, Py_ssize_t* count) {
  *out = NULL;
  *count = 0;
  if (sequence == Py_None) return 0;
  *count = PySequence_Size(sequence);
  if (*count < 0) return -1;
  *out = malloc(((size_t)*count + 1) * sizeof **out);
  if (!*out) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < *count; ++i) {
    PyObject* item = PySequence_GetItem(sequence, i);
    (*out)[i] = item ? (int32_t)PyLong_AsLong(item) : -1;
    Py_XDECREF(item);
    if (PyErr_Occurred()) return -1;
  }
  return 0;
}

PyObject* shw_py_int_tuple(const int64_t* values, Py_ssize_t count) {
  PyObject* tuple = PyTuple_New(count);
  for (Py_ssize_t i = 0; tuple && i < count; ++i) {
    PyObject* value = PyLong_FromLongLong(values[i]);
    if (!value || PyTuple_SetItem(tuple, i, value) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

PyObject* shw_py_report_summary(PyObject* capsule) {
  void* report = NULL;
  if (shw_py_handle(capsule, "shw_report", &report) < 0) return NULL;
  shw_report_summary s;
  shw_report_summary_init(&s, sizeof s);
  shw_error* error = NULL;
  const shw_status status = shw_report_summarize(report, &s, &error);
  if (status != SHW_OK) return failed(status, error);
  typedef unsigned long long u64;
  return Py_BuildValue("(IKKKKKKKKLLLLLLK)", (unsigned)s.flags, (u64)s.tensor_count,
                       (u64)s.object_count, (u64)s.chunk_count, (u64)s.file_count, (u64)s.bytes,
                       (u64)s.bytes_total, (u64)s.bytes_over_read, (u64)s.bytes_staged_peak,
                       (long long)s.plan_ns, (long long)s.stage_ns, (long long)s.transfer_ns,
                       (long long)s.sync_ns, (long long)s.commit_ns, (long long)s.elapsed_ns,
                       (u64)s.bytes_received);
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
    PyObject* row =
        Py_BuildValue("(IIIKK)", (unsigned)item.flags, (unsigned)item.entry, (unsigned)item.piece,
                      (unsigned long long)item.chunk, (unsigned long long)item.byte_size);
    if (!row || PyList_SetItem(list, (Py_ssize_t)i, row) < 0) Py_CLEAR(list);
  }
  return list;
}

/* ---- states ---- */

/* (names, data, content types, paths or None, kinds or None): lists of bytes of one length; kinds a
 * list of numbers. */
PyObject* shw_py_state_add_objects(PyObject* capsule, PyObject* lists) {
  void* state = NULL;
  PyObject *names, *data, *types, *paths, *kinds;
  if (!PyArg_ParseTuple(lists, "OOOOO", &names, &data, &types, &paths, &kinds)) return NULL;
  if (shw_py_handle(capsule, "shw_state", &state) < 0) return NULL;
  shw_py_blob name_blob = {0}, data_blob = {0}, type_blob = {0}, path_blob = {0};
  int32_t* kind_values = NULL;
  Py_ssize_t kind_count = 0;
  PyObject* done = NULL;
  if (shw_py_join(names, &name_blob) == 0 && shw_py_join(data, &data_blob) == 0 &&
      shw_py_join(types, &type_blob) == 0 &&
      (paths == Py_None || shw_py_join(paths, &path_blob) == 0) &&
      shw_py_int32s(kinds, &kind_values, &kind_count) == 0) {
    shw_object_batch batch;
    shw_object_batch_init(&batch, sizeof batch);
    batch.count = name_blob.count;
    batch.names = name_blob.data;
    batch.name_offsets = name_blob.offsets;
    batch.data = data_blob.data;
    batch.data_offsets = data_blob.offsets;
    batch.content_types = type_blob.data;
    batch.content_type_offsets = type_blob.offsets;
    batch.paths = path_blob.data;
    batch.path_offsets = path_blob.offsets;
    batch.kinds = kind_values;
    shw_error* error = NULL;
    const shw_status status = shw_state_add_objects(state, &batch, &error);
    done = status == SHW_OK ? Py_BuildValue("") : failed(status, error);
  }
  shw_py_blob_free(&name_blob);
  shw_py_blob_free(&data_blob);
  shw_py_blob_free(&type_blob);
  shw_py_blob_free(&path_blob);
  free(kind_values);
  return done;
}

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
  return Py_BuildValue("(sNiiKKKi)", shw_dtype_name(t->dtype_code, t->dtype_bits), shape,
                       (int)t->kind, (int)t->rank, (unsigned long long)t->byte_size,
                       (unsigned long long)t->first_chunk, (unsigned long long)t->chunk_count,
                       t->dtype_code + 256 * t->dtype_bits);
}

/* One tuple per tensor: (dtype name, shape, kind, rank, byte_size, first_chunk, chunk_count, dtype
 * number). */
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
  int64_t box[2 * RANK_MAX];
  uint64_t size = 0;
  shw_error* error = NULL;
  const shw_status status =
      shw_checkpoint_chunk_box(checkpoint, index, box, 2 * RANK_MAX, &size, &error);
  if (status != SHW_OK) return failed(status, error);
  const Py_ssize_t ndim = (Py_ssize_t)(size / 2);
  return Py_BuildValue("(NNKKKi)", shw_py_int_tuple(box, ndim), shw_py_int_tuple(box + ndim, ndim),
                       (unsigned long long)info->file, (unsigned long long)info->offset,
                       (unsigned long long)info->byte_size, (int)info->rank);
}

/* One tuple per chunk: (offsets, sizes, file number, offset, byte_size, rank). */
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of calls: texts, lists of bytes, option tuples, attributes by name. Everything stays
 * borrowed from the Python objects, which the caller holds for the length of the call. */
#include "bindings/python/native/native.h"

#include <stdlib.h>
#include <string.h>

PyObject* shw_py_attribute(PyObject* object, const char* name) {
  PyObject* interned = PyUnicode_InternFromString(name);
  PyObject* found = interned ? PyObject_GetAttr(object, interned) : NULL;
  Py_XDECREF(interned);
  return found;
}

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
  free(blob->data);
  free(blob->offsets);
  blob->data = NULL;
  blob->offsets = NULL;
}

int shw_py_join(PyObject* list, shw_py_blob* blob) {
  const Py_ssize_t count = PyList_Check(list) ? PyList_Size(list) : -1;
  if (count < 0) {
    PyErr_SetString(PyExc_TypeError, "expected a list of bytes");
    return -1;
  }
  blob->count = (uint64_t)count;
  blob->offsets = calloc((size_t)count + 1, sizeof *blob->offsets);
  for (Py_ssize_t i = 0; blob->offsets && i < count; ++i) {
    char* bytes = NULL;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(PyList_GetItem(list, i), &bytes, &size) < 0) goto failed;
    blob->offsets[i + 1] = blob->offsets[i] + (uint64_t)size;
  }
  if (blob->offsets) blob->data = malloc(blob->offsets[count] + 1);
  if (!blob->data) {
    PyErr_NoMemory();
    goto failed;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    memcpy(blob->data + blob->offsets[i], PyBytes_AsString(PyList_GetItem(list, i)),
           blob->offsets[i + 1] - blob->offsets[i]);
  }
  return 0;
failed:
  shw_py_blob_free(blob);
  return -1;
}

int shw_py_indices(PyObject* list, shw_py_blob* blob) {
  const Py_ssize_t count = PyList_Check(list) ? PyList_Size(list) : -1;
  if (count < 0) {
    PyErr_SetString(PyExc_TypeError, "expected a list of numbers");
    return -1;
  }
  blob->count = (uint64_t)count;
  blob->offsets = calloc((size_t)count + 1, sizeof *blob->offsets);
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

/* Bytes of a tuple item as an array of `size` items of `width` bytes; None is NULL. */
static int array_of(PyObject* object, size_t width, uint64_t expected, const void** out) {
  *out = NULL;
  if (object == Py_None) return 0;
  char* bytes = NULL;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(object, &bytes, &size) < 0) return -1;
  if ((uint64_t)size != expected * width) {
    PyErr_SetString(PyExc_ValueError, "an option array has the wrong length");
    return -1;
  }
  *out = bytes;
  return 0;
}

/* Text of an option that C reads up to its NUL; None is NULL. */
static int path_of(PyObject* object, const char* parameter, const char** out) {
  uint64_t size = 0;
  return shw_py_text(object, out, &size) < 0 ? -1 : shw_py_no_nul(*out, size, parameter);
}

int shw_py_save_options_read(PyObject* tuple, shw_py_save_options* filled,
                             shw_save_options const** out) {
  *out = NULL;
  if (tuple == Py_None) return 0;
  shw_save_options* o = &filled->options;
  shw_save_options_init(o, sizeof *o);
  PyObject *trace_path, *kind_offsets, *kind_values, *metadata_offsets;
  Py_ssize_t globs_size, metadata_size;
  unsigned long long kind_count, metadata_count, memory_budget;
  long long deadline_ns;
  if (!PyArg_ParseTuple(tuple, "iiiiiiiIIIKLOz#OOKz#OK", &o->overwrite, &o->durability, &o->digests,
                        &o->owner, &o->verify_replicas, &o->format, &o->preset, &o->threads,
                        &o->file_mode, &o->keep_generations, &memory_budget, &deadline_ns,
                        &trace_path, &o->kind_globs, &globs_size, &kind_offsets, &kind_values,
                        &kind_count, &o->metadata, &metadata_size, &metadata_offsets,
                        &metadata_count)) {
    return -1;
  }
  o->memory_budget = memory_budget;
  o->deadline_ns = deadline_ns;
  o->kind_count = kind_count;
  o->metadata_count = metadata_count;
  const void *offsets, *values, *pairs;
  if (path_of(trace_path, "trace_path", &o->trace_path) < 0 ||
      array_of(kind_offsets, sizeof(uint64_t), kind_count + 1, &offsets) < 0 ||
      array_of(kind_values, sizeof(int32_t), kind_count, &values) < 0 ||
      array_of(metadata_offsets, sizeof(uint64_t), 2 * metadata_count + 1, &pairs) < 0) {
    return -1;
  }
  o->kind_offsets = offsets;
  o->kind_values = values;
  o->metadata_offsets = pairs;
  *out = o;
  return 0;
}

int shw_py_load_options_read(PyObject* tuple, shw_py_load_options* filled,
                             shw_load_options const** out) {
  *out = NULL;
  if (tuple == Py_None) return 0;
  shw_load_options* o = &filled->options;
  shw_load_options_init(o, sizeof *o);
  PyObject *trace_path, *strict_offsets, *strict_rules, *strict_shapes;
  Py_ssize_t globs_size;
  unsigned long long strict_count, memory_budget;
  long long deadline_ns;
  if (!PyArg_ParseTuple(tuple, "iiiiiiiIKLOz#OOOK", &o->missing, &o->unexpected, &o->cast,
                        &o->verify, &o->format, &o->preset, &o->shape, &o->threads, &memory_budget,
                        &deadline_ns, &trace_path, &o->strict_globs, &globs_size, &strict_offsets,
                        &strict_rules, &strict_shapes, &strict_count)) {
    return -1;
  }
  o->memory_budget = memory_budget;
  o->deadline_ns = deadline_ns;
  o->strict_count = strict_count;
  const void *offsets, *rules, *shapes;
  if (path_of(trace_path, "trace_path", &o->trace_path) < 0 ||
      array_of(strict_offsets, sizeof(uint64_t), strict_count + 1, &offsets) < 0 ||
      array_of(strict_rules, sizeof(int32_t), 3 * strict_count, &rules) < 0 ||
      array_of(strict_shapes, sizeof(int32_t), strict_count, &shapes) < 0) {
    return -1;
  }
  o->strict_offsets = offsets;
  o->strict_rules = rules;
  o->strict_shapes = shapes;
  *out = o;
  return 0;
}

int shw_py_checkpoint_options_read(PyObject* tuple, shw_py_checkpoint_options* filled,
                                   shw_checkpoint_options const** out) {
  *out = NULL;
  if (tuple == Py_None) return 0;
  shw_checkpoint_options* o = &filled->options;
  shw_checkpoint_options_init(o, sizeof *o);
  unsigned long long memory_budget;
  long long deadline_ns;
  if (!PyArg_ParseTuple(tuple, "iiIKL", &o->verify, &o->format, &o->threads, &memory_budget,
                        &deadline_ns))
    return -1;
  o->memory_budget = memory_budget;
  o->deadline_ns = deadline_ns;
  *out = o;
  return 0;
}

int shw_py_estimate_options_read(PyObject* tuple, shw_py_estimate_options* filled,
                                 shw_estimate_options const** out) {
  *out = NULL;
  if (tuple == Py_None) return 0;
  shw_estimate_options* o = &filled->options;
  shw_estimate_options_init(o, sizeof *o);
  unsigned long long memory_budget, rank_rate, total_rate;
  if (!PyArg_ParseTuple(tuple, "IiiKKK", &o->flags, &o->owner, &o->preset, &memory_budget,
                        &rank_rate, &total_rate))
    return -1;
  o->memory_budget = memory_budget;
  o->rank_bytes_per_second = rank_rate;
  o->total_bytes_per_second = total_rate;
  *out = o;
  return 0;
}

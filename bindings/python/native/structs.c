/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs of the headers from dictionaries, and as named tuples, field by field as their tables
 * say. Arrays are read where they lie when they have the buffer protocol and copied from lists;
 * their lengths are checked against one another. GIL held. */
#include "bindings/python/native/structs.h"

#include <stdio.h>
#include <string.h>

/* Names of the fields as Python has them, and the type of results; made at first use. */
static PyObject* names[SHW_STRUCT_COUNT][SHW_FIELDS_MAX];
static PyTypeObject* types[SHW_STRUCT_COUNT];

static PyObject* name_of(const shw_struct* type, size_t i) {
  PyObject** name = &names[type->number][i];
  if (!*name) *name = PyUnicode_InternFromString(type->fields[i].name);
  return *name;
}

void shw_py_struct_free(shw_py_held* held) {
  while (held->view_count > 0) PyBuffer_Release(&held->views[--held->view_count]);
  while (held->block_count > 0) PyMem_Free(held->blocks[--held->block_count]);
  PyMem_Free(held->views);
  held->views = NULL;
}

/* Room for what each pointer field borrows from; one block of memory. */
static int held_make(shw_py_held* held, const shw_struct* type) {
  if (type->pointer_count == 0 || held->views) return 0;
  const size_t most = 2 * (size_t)type->pointer_count; /* a list of texts makes its cuts, too */
  held->views = PyMem_Malloc(most * (sizeof *held->views + sizeof *held->blocks));
  if (!held->views) {
    PyErr_NoMemory();
    return -1;
  }
  held->blocks = (void**)(held->views + most);
  return 0;
}

/* Zeroed memory for an array that ends with the call; NULL with an exception. */
static void* held_block(shw_py_held* held, size_t count, size_t width) {
  void* block = PyMem_Calloc(count + 1, width);
  if (!block) return PyErr_NoMemory();
  held->blocks[held->block_count++] = block;
  return block;
}

/* Elements that each array was given, to be checked once all counts and cuts are known. */
typedef struct {
  void* into;
  const shw_struct* type;
  shw_py_held* held;
  Py_ssize_t bytes[SHW_FIELDS_MAX]; /* of the arrays that were given, else -1 */
} reading;

static void set_pointer(reading* r, size_t offset, const void* pointer) {
  memcpy((char*)r->into + offset, &pointer, sizeof pointer);
}

static int does_not_fit(const char* what, long long at, int bits) {
  PyErr_Clear();
  shw_py_fail(SHW_INVALID_ARGUMENT, "value %lld of %s does not fit into %d bits", at, what, bits);
  return -1;
}

/* ---- numbers ---- */

/* A number into `width` bytes; -1 with OverflowError where it does not fit, TypeError for no
 * number. */
static int put_number(void* at, size_t width, int sign, PyObject* value) {
  const int bits = 8 * (int)width - sign;
  if (width == 8 && !sign) {
    const uint64_t number = PyLong_AsUnsignedLongLong(value);
    if (number == UINT64_MAX && PyErr_Occurred()) return -1;
    memcpy(at, &number, 8);
    return 0;
  }
  const int64_t number = PyLong_AsLongLong(value);
  if (number == -1 && PyErr_Occurred()) return -1;
  if (width < 8 && (number >= (int64_t)1 << bits || number < (sign ? -((int64_t)1 << bits) : 0))) {
    PyErr_SetString(PyExc_OverflowError, number < 0 ? "signed integer is less than minimum"
                                                    : "signed integer is greater than maximum");
    return -1;
  }
  memcpy(at, &number, width); /* little-endian, as all that the library runs on */
  return 0;
}

static int read_numbers(reading* r, size_t i, PyObject* sequence) {
  const shw_field* f = &r->type->fields[i];
  const Py_ssize_t count = PySequence_Size(sequence);
  char* block = count < 0 ? NULL : held_block(r->held, (size_t)count, f->width);
  if (!block) return -1;
  for (Py_ssize_t n = 0; n < count; ++n) {
    PyObject* item = PySequence_GetItem(sequence, n);
    const int bad = !item || put_number(block + (size_t)n * f->width, f->width, f->sign, item) < 0;
    Py_XDECREF(item);
    if (!bad) continue;
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return -1;
    return does_not_fit(f->width == 8 ? "a shape or box" : f->name, n, 8 * f->width - f->sign);
  }
  set_pointer(r, f->offset, block);
  r->bytes[i] = count * f->width;
  return 0;
}

/* ---- texts and bytes ---- */

static int read_text(reading* r, size_t i, PyObject* value) {
  const shw_field* f = &r->type->fields[i];
  const char* text = NULL;
  uint64_t size = 0;
  if (shw_py_text(value, &text, &size) < 0) return -1;
  if (f->kind == SHW_FIELD_TEXT && shw_py_no_nul(text, size, f->name) < 0) return -1;
  set_pointer(r, f->offset, text);
  if (f->kind == SHW_FIELD_BYTES) memcpy((char*)r->into + f->other, &size, sizeof size);
  return 0;
}

/* Index of the field at an offset. */
static size_t field_at(const shw_struct* type, size_t offset) {
  size_t i = 0;
  while (type->fields[i].offset != offset) ++i;
  return i;
}

/* A list of texts or bytes as one blob, and the cuts between them. */
static int read_parts(reading* r, size_t i, PyObject* list) {
  const shw_field* f = &r->type->fields[i];
  shw_py_blob blob = {0};
  if (shw_py_join(list, &blob) < 0) return -1;
  r->held->blocks[r->held->block_count++] = blob.data;
  r->held->blocks[r->held->block_count++] = blob.offsets;
  set_pointer(r, f->offset, blob.data);
  set_pointer(r, f->other, blob.offsets);
  r->bytes[i] = (Py_ssize_t)blob.offsets[blob.count];
  r->bytes[field_at(r->type, f->other)] = (Py_ssize_t)((blob.count + 1) * sizeof *blob.offsets);
  return 0;
}

static int read_buffer(reading* r, size_t i, PyObject* value) {
  const shw_field* f = &r->type->fields[i];
  Py_buffer* view = &r->held->views[r->held->view_count];
  if (PyObject_GetBuffer(value, view, PyBUF_SIMPLE) < 0) return -1;
  ++r->held->view_count;
  /* What is empty may lie anywhere: nothing is read. */
  if (view->len != 0 && f->width <= 8 && (uintptr_t)view->buf % f->width != 0) {
    shw_py_fail(SHW_INVALID_ARGUMENT, "parameter '%s' is not aligned to its elements", f->name);
    return -1;
  }
  set_pointer(r, f->offset, view->buf);
  r->bytes[i] = view->len;
  return 0;
}

/* ---- fields ---- */

static int read_field(reading* r, size_t i, PyObject* value) {
  const shw_field* f = &r->type->fields[i];
  void* handle = NULL;
  switch (f->kind) {
    case SHW_FIELD_INT:
    case SHW_FIELD_UINT:
      return put_number(shw_field_at(r->into, f), f->width, f->kind == SHW_FIELD_INT, value);
    case SHW_FIELD_HANDLE:
      if (shw_py_handle(value, f->handle, &handle) < 0) return -1;
      set_pointer(r, f->offset, handle);
      return 0;
    case SHW_FIELD_ARRAY:
      if (value == Py_None) return 0;
      if (!PyList_Check(value) && !PyTuple_Check(value)) return read_buffer(r, i, value);
      return f->other && f->width == 1 ? read_parts(r, i, value) : read_numbers(r, i, value);
    case SHW_FIELD_CALLBACK: /* progress is asked for: job_progress */
      PyErr_Format(PyExc_TypeError, "%s: callbacks have no way into Python", f->name);
      return -1;
    default:
      return read_text(r, i, value);
  }
}

static int check_cuts(const char* name, const uint64_t* cuts, uint64_t count) {
  if (count == 0 || cuts[0] != 0) {
    shw_py_fail(SHW_INVALID_ARGUMENT, "parameter '%s' does not begin with 0", name);
    return -1;
  }
  for (uint64_t i = 1; i < count; ++i) {
    if (cuts[i] < cuts[i - 1] || cuts[i] > INT64_MAX / 64) {
      shw_py_fail(SHW_INVALID_ARGUMENT, "parameter '%s' does not ascend", name);
      return -1;
    }
  }
  return 0;
}

/* The cuts first: the lengths of the other arrays follow from them. */
static int check_arrays(const reading* r) {
  for (int cuts = 1; cuts >= 0; --cuts) {
    for (size_t i = 0; i < r->type->field_count; ++i) {
      const shw_field* f = &r->type->fields[i];
      if (r->bytes[i] < 0 || f->cuts != cuts) continue;
      const uint64_t expected = f->length(r->into), given = (uint64_t)r->bytes[i];
      if (given % f->width != 0 || given / f->width != expected) {
        shw_py_fail(SHW_INVALID_ARGUMENT, "parameter '%s' has %zd bytes, expected %llu of %d each",
                    f->name, r->bytes[i], (unsigned long long)expected, f->width);
        return -1;
      }
      if (cuts && check_cuts(f->name, shw_field_pointer(r->into, f), expected) < 0) return -1;
    }
  }
  return 0;
}

/* An error that names the field of a dictionary that the struct does not have; -1. */
static int unknown_field(const shw_struct* type, PyObject* given) {
  Py_ssize_t next = 0;
  PyObject *key, *value;
  while (PyDict_Next(given, &next, &key, &value)) {
    int known = 0;
    for (size_t i = 0; i < type->field_count; ++i)
      known |=
          PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, type->fields[i].name) == 0;
    if (!known) PyErr_Format(PyExc_TypeError, "%s has no field %R", type->name, key);
  }
  return -1;
}

int shw_py_struct_read(PyObject* given, const shw_struct* type, void* into, shw_py_held* held) {
  const uint32_t size = type->size;
  memset(into, 0, size);
  memcpy(into, &size, sizeof size);
  if (given == Py_None) return 0;
  if (!PyDict_Check(given)) {
    PyErr_Format(PyExc_TypeError, "expected the fields of %s", type->name);
    return -1;
  }
  reading r = {into, type, held, {0}};
  for (size_t i = 0; i < type->field_count; ++i) r.bytes[i] = -1;
  if (held_make(held, type) < 0) return -1;
  Py_ssize_t found = 0;
  for (size_t i = 0; i < type->field_count; ++i) {
    PyObject* name = name_of(type, i);
    PyObject* value = name ? PyDict_GetItemWithError(given, name) : NULL;
    if (!value && PyErr_Occurred()) return -1;
    if (!value) continue;
    ++found;
    if (read_field(&r, i, value) < 0) return -1;
  }
  if (found != PyDict_Size(given)) return unknown_field(type, given);
  return check_arrays(&r);
}

/* ---- results ---- */

/* Type of named tuples with the fields of a struct, NULL with an exception. */
static PyTypeObject* type_of(const shw_struct* type) {
  PyTypeObject** made = &types[type->number];
  if (*made) return *made;
  char name[96];
  (void)snprintf(name, sizeof name, "shardwright._native._shw_native.%s", type->name);
  PyStructSequence_Field fields[SHW_FIELDS_MAX + 1] = {{NULL, NULL}};
  for (size_t i = 0; i < type->field_count; ++i) fields[i].name = type->fields[i].name;
  PyStructSequence_Desc description = {name, NULL, fields, (int)type->field_count};
  *made = PyStructSequence_NewType(&description);
  return *made;
}

/* Bytes of an array: None where it says nothing, empty where there can be nothing to say. */
static PyObject* array_value(const shw_field* f, const void* from) {
  const void* data = shw_field_pointer(from, f);
  const uint64_t count = f->length(from);
  const uint64_t* cuts = NULL;
  if (f->other) memcpy(&cuts, (const char*)from + f->other, sizeof cuts);
  if (!data && (count != 0 || (f->other && !cuts))) return Py_NewRef(Py_None);
  return PyBytes_FromStringAndSize(data ? data : "", (Py_ssize_t)(count * f->width));
}

static PyObject* value_of(const shw_field* f, const void* from) {
  const char* text =
      f->kind == SHW_FIELD_INT || f->kind == SHW_FIELD_UINT ? NULL : shw_field_pointer(from, f);
  uint64_t size = 0;
  switch (f->kind) {
    case SHW_FIELD_INT:
      return PyLong_FromLongLong((int64_t)shw_field_number(from, f));
    case SHW_FIELD_UINT:
      return PyLong_FromUnsignedLongLong(shw_field_number(from, f));
    case SHW_FIELD_ARRAY:
      return array_value(f, from);
    case SHW_FIELD_BYTES:
      memcpy(&size, (const char*)from + f->other, sizeof size);
      return PyUnicode_DecodeUTF8(text ? text : "", text ? (Py_ssize_t)size : 0, "replace");
    default:
      return PyUnicode_FromString(text ? text : "");
  }
}

PyObject* shw_py_struct_write(const shw_struct* type, const void* from) {
  PyTypeObject* sequence = type_of(type);
  PyObject* made = sequence ? PyStructSequence_New(sequence) : NULL;
  for (size_t i = 0; made && i < type->field_count; ++i) {
    PyObject* value = value_of(&type->fields[i], from);
    if (value)
      PyStructSequence_SetItem(made, (Py_ssize_t)i, value);
    else
      Py_CLEAR(made);
  }
  return made;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills columns: all tensors of one dict or list in one loop, single leaves with a placement, and
 * flat arrays of addresses. Names of nested entries are joined with "."; paths are JSON arrays
 * without the closing bracket while they are built. GIL held. */
#include "bindings/python/native/columns.h"

#include <stdio.h>
#include <string.h>

/* Where a container lies: its joined name, and its path text such as ["optim",0 without the
 * bracket; empty at the top. */
typedef struct {
  const char* name;
  Py_ssize_t name_size;
  const char* path;
  Py_ssize_t path_size;
} place;

/* Joined name of the entry that was added last. */
static int add_name(columns* self, const place* at, const char* name, size_t size) {
  if (at->path_size && (vector_append(&self->names, at->name, (size_t)at->name_size) < 0 ||
                        vector_append(&self->names, ".", 1) < 0)) {
    return -1;
  }
  if (vector_append(&self->names, name, size) < 0) return -1;
  const uint64_t end = self->names.size;
  return vector_append(&self->name_offsets, &end, sizeof end);
}

/* Ends the path of the entry that was added last. Offsets are kept from the first path that is not
 * empty. */
static int end_path(columns* self) {
  const uint64_t end = self->paths.size;
  if (self->path_offsets.size) return vector_append(&self->path_offsets, &end, sizeof end);
  if (!end) return 0;
  uint64_t* offsets = vector_push(&self->path_offsets, (self->count + 1) * sizeof *offsets);
  if (!offsets) return -1;
  memset(offsets, 0, self->count * sizeof *offsets);
  offsets[self->count] = end;
  return 0;
}

/* One key: text of the joined name, and what kind of path part it is. */
typedef struct {
  const char* text;
  Py_ssize_t size;
  enum { KEY_TEXT, KEY_INTEGER, KEY_POSITION } kind;
  PyObject* owned;
} key_text;

static int push_json_string(vector* v, const char* text, Py_ssize_t size) {
  if (vector_append(v, "\"", 1) < 0) return -1;
  for (Py_ssize_t i = 0; i < size; ++i) {
    const unsigned char c = (unsigned char)text[i];
    char escaped[8];
    int length = 1;
    escaped[0] = text[i];
    if (c == '"' || c == '\\')
      length = snprintf(escaped, sizeof escaped, "\\%c", c);
    else if (c < 0x20)
      length = snprintf(escaped, sizeof escaped, "\\u%04x", c);
    if (vector_append(v, escaped, (size_t)length) < 0) return -1;
  }
  return vector_append(v, "\"", 1);
}

/* Path of the entry that was added last: none for a text key at the top, whose name says it all. */
static int push_path(columns* self, const place* at, const key_text* key) {
  vector* v = &self->paths;
  if (at->path_size == 0 && key->kind == KEY_TEXT) return end_path(self);
  if (at->path_size
          ? vector_append(v, at->path, (size_t)at->path_size) < 0 || vector_append(v, ",", 1) < 0
          : vector_append(v, "[", 1) < 0) {
    return -1;
  }
  int failed;
  if (key->kind == KEY_TEXT) {
    failed = push_json_string(v, key->text, key->size);
  } else if (key->kind == KEY_INTEGER) {
    failed = vector_append(v, key->text, (size_t)key->size);
  } else {
    failed = vector_append(v, "[", 1) < 0 || vector_append(v, key->text, (size_t)key->size) < 0 ||
             vector_append(v, "]", 1) < 0;
  }
  return failed || vector_append(v, "]", 1) < 0 || end_path(self) < 0 ? -1 : 0;
}

/* 1 for a usable key, 0 for a key of another type, -1 with an exception. */
static int read_key(PyObject* key, key_text* out) {
  out->owned = NULL;
  if (PyUnicode_Check(key)) {
    out->kind = KEY_TEXT;
    uint64_t size;
    if (shw_py_text(key, &out->text, &size) < 0) return -1;
    out->size = (Py_ssize_t)size;
    return 1;
  }
  if (!PyLong_CheckExact(key)) return 0;
  out->kind = KEY_INTEGER;
  out->owned = PyObject_Str(key);
  out->text = out->owned ? PyUnicode_AsUTF8AndSize(out->owned, &out->size) : NULL;
  return out->text ? 1 : -1;
}

static int add_rest(PyObject* rest, PyObject* key, PyObject* value) {
  PyObject* pair = PyTuple_Pack(2, key, value);
  const int failed = !pair || PyList_Append(rest, pair) < 0;
  Py_XDECREF(pair);
  return failed ? -1 : 0;
}

/* Where what lies in a container goes. */
typedef struct {
  columns* whole;
  const part_route* parts; /* NULL: nowhere */
  place at;
  PyObject* rest; /* list of (key, value) */
} collection;

/* One value of a container: into columns when it is a tensor, else into the rest. */
static int take_value(const collection* c, PyObject* key, int position, PyObject* value) {
  key_text text;
  const int part = columns_is_part(c->parts, value);
  const leaf_type* type = part ? NULL : leaf_type_of(value);
  if (!part && !type) return -1;
  if (!part && type->kind == LEAF_OTHER) return add_rest(c->rest, key, value);
  const int usable = read_key(key, &text);
  if (usable < 0) return -1;
  if (usable == 0) return add_rest(c->rest, key, value);
  if (position) text.kind = KEY_POSITION;
  columns* into = part ? c->parts->laid : c->whole;
  const uint64_t size = (uint64_t)text.size;
  int taken = part ? columns_add_part(c->parts, value, text.text, size)
                   : columns_add_leaf(into, value, type, text.text, size);
  if (taken == 1 &&
      (add_name(into, &c->at, text.text, size) < 0 || push_path(into, &c->at, &text) < 0)) {
    taken = -1;
  }
  Py_XDECREF(text.owned);
  if (taken < 0) return -1;
  return taken ? 0 : add_rest(c->rest, key, value);
}

static int take_dict(const collection* c, PyObject* dict) {
  Py_ssize_t next = 0;
  PyObject *key, *value;
  int failed = 0;
  while (!failed && PyDict_Next(dict, &next, &key, &value)) {
    Py_INCREF(key); /* methods of the value may be Python code that changes the dict */
    Py_INCREF(value);
    failed = take_value(c, key, 0, value) < 0;
    Py_DECREF(key);
    Py_DECREF(value);
  }
  return failed ? -1 : 0;
}

static int take_sequence(const collection* c, PyObject* sequence) {
  const Py_ssize_t count = PySequence_Size(sequence);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* key = PyLong_FromSsize_t(i);
    PyObject* value = key ? PySequence_GetItem(sequence, i) : NULL;
    const int failed = !value || take_value(c, key, 1, value) < 0;
    Py_XDECREF(key);
    Py_XDECREF(value);
    if (failed) return -1;
  }
  return count < 0 ? -1 : 0;
}

static uint64_t added_so_far(const collection* c) {
  const uint64_t whole = c->whole->moved + c->whole->count;
  return c->parts ? whole + c->parts->laid->count : whole;
}

/* Adds the tensors of a dict, list or tuple; gives (how many were added, [(key, value) of
 * everything else]). `parts`: None, or what columns_read_parts takes. */
PyObject* shw_py_columns_collect(PyObject* object, PyObject* container, PyObject* name,
                                 PyObject* path, PyObject* parts) {
  collection c = {columns_of(object), NULL, {NULL, 0, NULL, 0}, NULL};
  part_route route;
  char* text = NULL;
  if (!c.whole) return NULL;
  if (PyBytes_AsStringAndSize(name, &text, &c.at.name_size) < 0) return NULL;
  c.at.name = text;
  if (PyBytes_AsStringAndSize(path, &text, &c.at.path_size) < 0) return NULL;
  c.at.path = text;
  if (parts != Py_None) {
    if (columns_read_parts(parts, &route) < 0) return NULL;
    c.parts = &route;
  }
  const uint64_t before = added_so_far(&c);
  const Py_ssize_t entries =
      PyDict_Check(container) ? PyDict_Size(container) : PySequence_Size(container);
  if (entries < 0) return NULL;
  c.whole->expected = (uint64_t)entries;
  c.rest = PyList_New(0);
  if (!c.rest) return NULL;
  const int failed =
      PyDict_Check(container) ? take_dict(&c, container) : take_sequence(&c, container);
  if (failed < 0) {
    Py_DECREF(c.rest);
    return NULL;
  }
  return Py_BuildValue("(KN)", (unsigned long long)(added_so_far(&c) - before), c.rest);
}

/* ---- one leaf, anywhere ---- */

/* `leaf`: a tensor or DLPack capsule, or (buffer of the bytes, dtype number, shape). True when it
 * was taken. `path` is complete or empty. Columns are either all placed or all without
 * placement. */
PyObject* shw_py_columns_add(PyObject* object, PyObject* name, PyObject* path, PyObject* leaf,
                             PyObject* placement) {
  columns* self = columns_of(object);
  char *name_text, *path_text;
  Py_ssize_t name_size, path_size;
  if (!self || PyBytes_AsStringAndSize(name, &name_text, &name_size) < 0 ||
      PyBytes_AsStringAndSize(path, &path_text, &path_size) < 0) {
    return NULL;
  }
  int dtype = 0;
  PyObject *value = leaf, *shape = NULL;
  if (PyTuple_Check(leaf) && !PyArg_ParseTuple(leaf, "OiO", &value, &dtype, &shape)) return NULL;
  const leaf_type* type = leaf_type_of(value);
  if (!type) return NULL;
  const int taken = columns_add_leaf(self, value, type, name_text, (uint64_t)name_size);
  if (taken < 0) return NULL;
  if (taken == 0) Py_RETURN_FALSE;
  if (dtype) ((shw_tensor*)self->tensors.data)[self->count - 1].dtype = dtype;
  const place top = {0};
  if (add_name(self, &top, name_text, (size_t)name_size) < 0 ||
      vector_append(&self->paths, path_text, (size_t)path_size) < 0 || end_path(self) < 0) {
    return NULL;
  }
  if (placement != Py_None && columns_push_placement(self, placement) < 0) return NULL;
  Py_RETURN_TRUE;
}

/* ---- flat arrays ---- */

typedef struct {
  Py_buffer names, name_offsets, addresses, dtypes, shapes, shape_offsets;
} flat_views;

/* Checks that the arrays fit together; the number of tensors or -1. */
static Py_ssize_t flat_count(const flat_views* v) {
  const Py_ssize_t count = v->addresses.len / 8;
  const uint64_t *names = v->name_offsets.buf, *shapes = v->shape_offsets.buf;
  int fits = v->name_offsets.len == 8 * (count + 1) && v->dtypes.len == 2 * count &&
             v->shape_offsets.len == 8 * (count + 1) && names[0] == 0 && shapes[0] == 0 &&
             names[count] == (uint64_t)v->names.len && shapes[count] * 8 == (uint64_t)v->shapes.len;
  for (Py_ssize_t i = 0; fits && i < count; ++i)
    fits = names[i] <= names[i + 1] && shapes[i] <= shapes[i + 1];
  if (fits) return count;
  shw_py_fail(SHW_INVALID_ARGUMENT, "lengths or offsets of the flat arrays do not fit together");
  return -1;
}

/* Tensors from `begin` to `end` of the arrays into the columns. */
static int add_flat_piece(columns* self, const flat_views* v, Py_ssize_t begin, Py_ssize_t end) {
  const uint64_t *name_offsets = v->name_offsets.buf, *shape_offsets = v->shape_offsets.buf,
                 *addresses = v->addresses.buf;
  const uint16_t* dtypes = v->dtypes.buf;
  const size_t count = (size_t)(end - begin);
  const uint64_t names_from = name_offsets[begin], shapes_from = shape_offsets[begin];
  const uint64_t names_before = self->names.size;
  uint64_t* name_ends = vector_push(&self->name_offsets, count * sizeof *name_ends);
  shw_tensor* tensors = vector_push(&self->tensors, count * sizeof *tensors);
  if (!name_ends || !tensors ||
      vector_append(&self->names, (const char*)v->names.buf + names_from,
                    name_offsets[end] - names_from) < 0 ||
      vector_append(&self->extents, (const int64_t*)v->shapes.buf + shapes_from,
                    (shape_offsets[end] - shapes_from) * sizeof(int64_t)) < 0) {
    return -1;
  }
  memset(tensors, 0, count * sizeof *tensors);
  for (size_t i = 0; i < count; ++i) {
    const size_t from = (size_t)begin + i;
    name_ends[i] = names_before + name_offsets[from + 1] - names_from;
    tensors[i].struct_size = sizeof *tensors;
    tensors[i].data = (void*)(uintptr_t)addresses[from];
    tensors[i].device_type = SHW_DEVICE_CPU;
    tensors[i].dtype = dtypes[from];
    tensors[i].ndim = (int32_t)(shape_offsets[from + 1] - shape_offsets[from]);
  }
  self->count += (uint64_t)count;
  return 0;
}

static int add_flat(columns* self, const flat_views* v, Py_ssize_t count) {
  if (!self->state) {
    PyErr_SetString(PyExc_TypeError, "flat arrays go into columns of a state");
    return -1;
  }
  self->expected = (uint64_t)count;
  for (Py_ssize_t begin = 0; begin < count; begin += COLUMNS_PIECE) {
    const Py_ssize_t end = count - begin < COLUMNS_PIECE ? count : begin + COLUMNS_PIECE;
    if (self->count && columns_move(self) < 0) return -1;
    if (add_flat_piece(self, v, begin, end) < 0) return -1;
  }
  return 0;
}

/* (names, name offsets u64, addresses u64, dtype numbers u16, extents i64, extent offsets u64,
 * owner) */
PyObject* shw_py_columns_add_flat(PyObject* object, PyObject* arrays) {
  columns* self = columns_of(object);
  flat_views v;
  PyObject* owner;
  if (!self || !PyArg_ParseTuple(arrays, "y*y*y*y*y*y*O", &v.names, &v.name_offsets, &v.addresses,
                                 &v.dtypes, &v.shapes, &v.shape_offsets, &owner)) {
    return NULL;
  }
  const Py_ssize_t count = flat_count(&v);
  int failed = count < 0 || self->sealed || add_flat(self, &v, count) < 0;
  PyObject** held = failed ? NULL : vector_push(&self->owners, sizeof *held);
  if (held) {
    Py_INCREF(owner);
    *held = owner;
  }
  Py_buffer* views[] = {&v.names,  &v.name_offsets, &v.addresses,
                        &v.dtypes, &v.shapes,       &v.shape_offsets};
  for (size_t i = 0; i < sizeof views / sizeof views[0]; ++i) PyBuffer_Release(views[i]);
  if (held) Py_RETURN_NONE;
  if (!PyErr_Occurred())
    PyErr_SetString(PyExc_RuntimeError, "the columns are part of a state already");
  return NULL;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Items of a torch save plan, and values of a flat state dict, as the flat arrays of
 * shw_entry_batch. What the arrays cannot hold (classes of the host, several properties under one
 * name, boxes that leave their tensor) is no error: the caller keeps the objects then. Data of
 * tensors is never touched. GIL held. */
#include "bindings/python/torch_native/items.h"

#include <string.h>

static PyObject* configured; /* the tuple that `classes` borrows from */
static PyObject* maker;      /* makes it when it is first needed */
static item_classes classes;
static item_names names;

static int configure(PyObject* tuple);

const item_classes* shw_py_item_classes(void) {
  if (configured) return &classes;
  if (!maker) {
    PyErr_SetString(PyExc_RuntimeError, "items_configure was not called");
    return NULL;
  }
  PyObject* made = PyObject_CallNoArgs(maker);
  const int failed = !made || configure(made) < 0;
  Py_XDECREF(made);
  return failed ? NULL : &classes;
}

const item_names* shw_py_item_names(void) {
  return &names;
}

static int intern_names(void) {
  struct {
    PyObject** place;
    const char* text;
  } all[] = {{&names.fqn, "fqn"},
             {&names.index, "index"},
             {&names.offset, "offset"},
             {&names.type, "type"},
             {&names.bytes_io_data, "bytes_io_data"},
             {&names.tensor_data, "tensor_data"},
             {&names.chunk, "chunk"},
             {&names.properties, "properties"},
             {&names.size, "size"},
             {&names.offsets, "offsets"},
             {&names.sizes, "sizes"},
             {&names.dtype, "dtype"},
             {&names.layout, "layout"},
             {&names.requires_grad, "requires_grad"},
             {&names.memory_format, "memory_format"},
             {&names.pin_memory, "pin_memory"},
             {&names.strides, "strides"},
             {&names.write_hook, "__create_write_items__"},
             {&names.global_shape, "global_shape"},
             {&names.is_pinned, "is_pinned"},
             {&names.dest_index, "dest_index"},
             {&names.dest_offsets, "dest_offsets"},
             {&names.storage_index, "storage_index"},
             {&names.storage_offsets, "storage_offsets"},
             {&names.lengths, "lengths"}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) {
    if (!*all[i].place) *all[i].place = PyUnicode_InternFromString(all[i].text);
    if (!*all[i].place) return -1;
  }
  return 0;
}

static int configure(PyObject* tuple) {
  item_classes c;
  if (!PyArg_ParseTuple(tuple, "OOOOOOOOOOOOOOOOOO", &c.index_class, &c.item_class, &c.data_class,
                        &c.chunk_class, &c.properties_class, &c.size_class, &c.tensor_kind,
                        &c.shard_kind, &c.bytes_kind, &c.strided, &c.contiguous,
                        &c.numbers_of_dtypes, &c.dtypes_of_numbers, &c.tensor_class,
                        &c.parameter_class, &c.read_class, &c.tensor_read, &c.bytes_read) ||
      intern_names() < 0) {
    return -1;
  }
  c.exchange = shw_dl_exchange_of(c.tensor_class);
  PyObject* before = configured;
  Py_INCREF(tuple);
  configured = tuple;
  classes = c;
  Py_XDECREF(before);
  return 0;
}

PyObject* shw_py_items_configure(PyObject* given) {
  if (PyTuple_Check(given)) {
    if (configure(given) < 0) return NULL;
  } else {
    PyObject* before = maker;
    Py_INCREF(given);
    maker = given;
    Py_XDECREF(before);
  }
  Py_RETURN_NONE;
}

/* ---- arrays that are filled ---- */

typedef struct {
  vector names, name_offsets, dtypes, shapes, shape_offsets, box_ranges, box_offsets, box_sizes,
      attributes, attribute_offsets;
  uint64_t boxes;
  PyObject*
      key; /* of the dict that is read, whose keys differ; borrowed, NULL for a list of items */
  PyObject* seen;    /* set of names, NULL while all of them are keys of the dict */
  PyObject* last;    /* name of the last entry */
  PyObject* objects; /* list of the names of byte objects, NULL where nobody asks */
} encoder;

/* One tensor item before it is stored. Sizes and offsets have ndim values. */
typedef struct {
  Py_ssize_t ndim;
  int64_t shape[ITEM_RANK_MAX], offsets[ITEM_RANK_MAX], sizes[ITEM_RANK_MAX],
      strides[ITEM_RANK_MAX];
  int32_t dtype;
  unsigned char flags, stride_kind;
  int64_t hint; /* -1 = none */
} tensor_item;

static int encoder_start(encoder* self) {
  memset(self, 0, sizeof *self);
  const uint64_t zero = 0;
  return vector_append(&self->name_offsets, &zero, sizeof zero) == 0 &&
                 vector_append(&self->shape_offsets, &zero, sizeof zero) == 0 &&
                 vector_append(&self->box_ranges, &zero, sizeof zero) == 0 &&
                 vector_append(&self->attribute_offsets, &zero, sizeof zero) == 0
             ? 0
             : -1;
}

static void encoder_end(encoder* self) {
  vector* all[] = {
      &self->names,         &self->name_offsets,     &self->dtypes,      &self->shapes,
      &self->shape_offsets, &self->box_ranges,       &self->box_offsets, &self->box_sizes,
      &self->attributes,    &self->attribute_offsets};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) vector_free(all[i]);
  Py_XDECREF(self->seen);
  Py_XDECREF(self->last);
  Py_XDECREF(self->objects);
}

static PyObject* bytes_of(const vector* v) {
  return PyBytes_FromStringAndSize(v->data, (Py_ssize_t)v->size);
}

/* (count, names, name offsets, dtypes, shapes, shape offsets, box ranges, box offsets, box sizes,
 * attributes, attribute offsets) */
static PyObject* encoder_result(const encoder* self) {
  const unsigned long long count = VECTOR_COUNT(self->dtypes, int32_t);
  return Py_BuildValue(
      "(KNNNNNNNNNN)", count, bytes_of(&self->names), bytes_of(&self->name_offsets),
      bytes_of(&self->dtypes), bytes_of(&self->shapes), bytes_of(&self->shape_offsets),
      bytes_of(&self->box_ranges), bytes_of(&self->box_offsets), bytes_of(&self->box_sizes),
      bytes_of(&self->attributes), bytes_of(&self->attribute_offsets));
}

static PyObject* name_at(const encoder* self, size_t entry) {
  const uint64_t* ends = (const uint64_t*)self->name_offsets.data + entry;
  return PyUnicode_FromStringAndSize(self->names.data + ends[0], (Py_ssize_t)(ends[1] - ends[0]));
}

/* The names so far, once one comes that is no key of the dict. */
static int see_names(encoder* self) {
  const size_t count = VECTOR_COUNT(self->dtypes, int32_t);
  self->seen = PySet_New(NULL);
  for (size_t i = 0; self->seen && i < count; ++i) {
    PyObject* name = name_at(self, i);
    const int failed = !name || PySet_Add(self->seen, name) < 0;
    Py_XDECREF(name);
    if (failed) return -1;
  }
  return self->seen ? 0 : -1;
}

/* 1 for a name that no entry has, 0 for another, -1 with an exception. */
static int is_new_name(encoder* self, PyObject* name) {
  if (!self->seen && name == self->key && name != self->last) return 1;
  if (!self->seen && see_names(self) < 0) return -1;
  const Py_ssize_t known = PySet_Size(self->seen);
  if (PySet_Add(self->seen, name) < 0) return -1;
  return PySet_Size(self->seen) != known;
}

/* Begins an entry: 1, 0 when the name was seen before or is no plain text, -1 with an exception. */
static int begin_entry(encoder* self, PyObject* name, int32_t dtype) {
  if (!PyUnicode_CheckExact(name)) return 0;
  Py_ssize_t size;
  const char* text = PyUnicode_AsUTF8AndSize(name, &size);
  if (!text) {
    PyErr_Clear(); /* half of a surrogate pair */
    return 0;
  }
  const int is_new = is_new_name(self, name);
  if (is_new != 1) return is_new;
  if (vector_append(&self->names, text, (size_t)size) < 0 ||
      vector_append(&self->dtypes, &dtype, sizeof dtype) < 0) {
    return -1;
  }
  const uint64_t end = self->names.size;
  Py_XDECREF(self->last);
  self->last = Py_NewRef(name);
  return vector_append(&self->name_offsets, &end, sizeof end) < 0 ? -1 : 1;
}

static int end_entry(encoder* self) {
  const uint64_t shape_end = VECTOR_COUNT(self->shapes, int64_t);
  const uint64_t attribute_end = self->attributes.size;
  return vector_append(&self->shape_offsets, &shape_end, sizeof shape_end) < 0 ||
                 vector_append(&self->attribute_offsets, &attribute_end, sizeof attribute_end) <
                     0 ||
                 vector_append(&self->box_ranges, &self->boxes, sizeof self->boxes) < 0
             ? -1
             : 1;
}

static int add_object(encoder* self, PyObject* name) {
  const int begun = begin_entry(self, name, 0);
  if (begun != 1) return begun;
  if (self->objects && PyList_Append(self->objects, name) < 0) return -1;
  ++self->boxes;
  return end_entry(self);
}

static int add_box(encoder* self, const tensor_item* t) {
  const size_t size = (size_t)t->ndim * sizeof(int64_t);
  ++self->boxes;
  return vector_append(&self->box_offsets, t->offsets, size) < 0 ||
                 vector_append(&self->box_sizes, t->sizes, size) < 0
             ? -1
             : 1;
}

static size_t attributes_of(const tensor_item* t, char* out) {
  out[0] = (char)t->flags;
  out[1] = (char)t->stride_kind;
  if (t->stride_kind != STRIDES_LISTED) return 2;
  memcpy(out + 2, t->strides, (size_t)t->ndim * sizeof(int64_t));
  return 2 + (size_t)t->ndim * sizeof(int64_t);
}

/* Another box of the last entry: 1, 0 when it differs in more than its box, -1 with an
 * exception. */
static int extend_entry(encoder* self, const tensor_item* t) {
  const uint64_t entry = VECTOR_COUNT(self->dtypes, int32_t) - 1;
  const uint64_t* shape_ends = (const uint64_t*)self->shape_offsets.data + entry;
  uint64_t* box_ends = (uint64_t*)self->box_ranges.data + entry;
  const uint64_t* attribute_ends = (const uint64_t*)self->attribute_offsets.data + entry;
  char attributes[2 + ITEM_RANK_MAX * sizeof(int64_t)];
  const size_t size = attributes_of(t, attributes);
  const uint64_t position = box_ends[1] - box_ends[0];
  if (((const int32_t*)self->dtypes.data)[entry] != t->dtype || !(t->flags & ITEM_IS_SHARD) ||
      shape_ends[1] - shape_ends[0] != (uint64_t)t->ndim ||
      memcmp((const int64_t*)self->shapes.data + shape_ends[0], t->shape,
             (size_t)t->ndim * sizeof(int64_t)) != 0 ||
      attribute_ends[1] - attribute_ends[0] != size ||
      memcmp(self->attributes.data + attribute_ends[0], attributes, size) != 0 ||
      (t->flags & ITEM_IS_NUMBERED && (uint64_t)t->hint != position)) {
    return 0;
  }
  if (add_box(self, t) < 0) return -1;
  box_ends = (uint64_t*)self->box_ranges.data + entry;
  box_ends[1] = self->boxes;
  return 1;
}

static int add_tensor(encoder* self, PyObject* name, const tensor_item* t) {
  for (Py_ssize_t d = 0; d < t->ndim; ++d) {
    if (t->offsets[d] < 0 || t->sizes[d] < 0 || t->sizes[d] > t->shape[d] ||
        t->offsets[d] > t->shape[d] - t->sizes[d])
      return 0;
  }
  const int again = self->last == name || (self->last && PyUnicode_CheckExact(name) &&
                                           PyUnicode_Compare(self->last, name) == 0);
  if (again) return extend_entry(self, t);
  if (t->flags & ITEM_IS_NUMBERED && t->hint != 0) return 0;
  const int begun = begin_entry(self, name, t->dtype);
  if (begun != 1) return begun;
  char attributes[2 + ITEM_RANK_MAX * sizeof(int64_t)];
  const size_t size = attributes_of(t, attributes);
  if (vector_append(&self->attributes, attributes, size) < 0 ||
      vector_append(&self->shapes, t->shape, (size_t)t->ndim * sizeof(int64_t)) < 0 ||
      add_box(self, t) < 0) {
    return -1;
  }
  return end_entry(self);
}

/* Says how strides are kept: row-major strides of the box follow from its sizes. */
static void set_strides(tensor_item* t, const int64_t* strides) {
  int64_t expected = 1;
  t->stride_kind = STRIDES_ROW_MAJOR;
  for (Py_ssize_t d = t->ndim - 1; d >= 0; --d) {
    if (strides[d] != expected) t->stride_kind = STRIDES_LISTED;
    expected *= t->sizes[d] > 1 ? t->sizes[d] : 1;
  }
  if (t->stride_kind == STRIDES_LISTED)
    memcpy(t->strides, strides, (size_t)t->ndim * sizeof(int64_t));
}

/* ---- items of torch ---- */

Py_ssize_t shw_py_int_values(PyObject* tuple, int64_t* values) {
  const Py_ssize_t count = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;
  if (count > ITEM_RANK_MAX) return -1;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* value = PyTuple_GetItem(tuple, i);
    if (!PyLong_CheckExact(value)) return -1;
    values[i] = PyLong_AsLongLong(value);
    if (values[i] == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      return -1;
    }
  }
  return count;
}

int shw_py_has_class(PyObject* object, PyObject* expected) {
  return object && (PyObject*)Py_TYPE(object) == expected;
}

/* Properties of an item: 1, 0 when the arrays cannot hold them, -1 with an exception. */
static int read_properties(PyObject* properties, tensor_item* t) {
  PyObject* dtype = PyObject_GetAttr(properties, names.dtype);
  PyObject* layout = dtype ? PyObject_GetAttr(properties, names.layout) : NULL;
  PyObject* grad = layout ? PyObject_GetAttr(properties, names.requires_grad) : NULL;
  PyObject* format = grad ? PyObject_GetAttr(properties, names.memory_format) : NULL;
  PyObject* pinned = format ? PyObject_GetAttr(properties, names.pin_memory) : NULL;
  PyObject* strides = pinned ? PyObject_GetAttr(properties, names.strides) : NULL;
  int answer = -1;
  if (strides) {
    PyObject* number = PyDict_GetItemWithError(classes.numbers_of_dtypes, dtype);
    int64_t values[ITEM_RANK_MAX];
    answer = number && layout == classes.strided && format == classes.contiguous &&
             PyBool_Check(grad) && PyBool_Check(pinned);
    if (number) t->dtype = (int32_t)PyLong_AsLong(number);
    if (grad == Py_True) t->flags |= ITEM_REQUIRES_GRAD;
    if (pinned == Py_True) t->flags |= ITEM_IS_PINNED;
    if (strides == Py_None)
      t->stride_kind = STRIDES_ABSENT;
    else if (PyTuple_CheckExact(strides) && shw_py_int_values(strides, values) == t->ndim)
      set_strides(t, values);
    else
      answer = 0;
  }
  PyObject* all[] = {dtype, layout, grad, format, pinned, strides};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) Py_XDECREF(all[i]);
  return PyErr_Occurred() ? -1 : answer;
}

/* Boxes, shape and properties of an item's tensor data, whose index has the offset `offset`. */
static int read_data(PyObject* data, PyObject* offset, tensor_item* t) {
  PyObject* chunk = PyObject_GetAttr(data, names.chunk);
  PyObject* size = chunk ? PyObject_GetAttr(data, names.size) : NULL;
  PyObject* properties = size ? PyObject_GetAttr(data, names.properties) : NULL;
  PyObject *offsets = NULL, *sizes = NULL;
  int answer = properties ? shw_py_has_class(chunk, classes.chunk_class) &&
                                shw_py_has_class(properties, classes.properties_class)
                          : -1;
  if (answer == 1) {
    offsets = PyObject_GetAttr(chunk, names.offsets);
    sizes = offsets ? PyObject_GetAttr(chunk, names.sizes) : NULL;
    if (!sizes) answer = -1;
  }
  if (answer == 1) {
    t->ndim = shw_py_has_class(size, classes.size_class) ? shw_py_int_values(size, t->shape) : -1;
    int64_t again[ITEM_RANK_MAX];
    const int same =
        offset == offsets || (shw_py_int_values(offset, again) == t->ndim && t->ndim >= 0);
    answer =
        t->ndim >= 0 && same && shw_py_has_class(offset, classes.size_class) &&
        shw_py_has_class(offsets, classes.size_class) &&
        shw_py_has_class(sizes, classes.size_class) &&
        shw_py_int_values(offsets, t->offsets) == t->ndim &&
        shw_py_int_values(sizes, t->sizes) == t->ndim &&
        (offset == offsets || memcmp(again, t->offsets, (size_t)t->ndim * sizeof(int64_t)) == 0);
  }
  if (answer == 1) answer = read_properties(properties, t);
  PyObject* all[] = {chunk, size, properties, offsets, sizes};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) Py_XDECREF(all[i]);
  return answer;
}

/* Stores an item whose parts were looked up: 1, 0 when the arrays cannot hold it, -1 with an
 * exception. */
static int store_parts(encoder* self, PyObject* const* part) {
  PyObject *fqn = part[0], *offset = part[1], *hint = part[2], *type = part[3], *data = part[5];
  if (part[4] != Py_None) return 0; /* bytes_io_data */
  if (type == classes.bytes_kind) {
    if (offset != Py_None || hint != Py_None || data != Py_None) return 0;
    return add_object(self, fqn);
  }
  tensor_item t;
  t.flags = type == classes.shard_kind ? ITEM_IS_SHARD : 0;
  t.hint = -1;
  if ((type != classes.tensor_kind && type != classes.shard_kind) ||
      !shw_py_has_class(data, classes.data_class)) {
    return 0;
  }
  if (hint != Py_None) {
    if (!PyLong_CheckExact(hint)) return 0;
    t.hint = PyLong_AsLongLong(hint);
    t.flags |= ITEM_IS_NUMBERED;
    if (PyErr_Occurred()) PyErr_Clear();
    if (t.hint < 0) return 0;
  }
  const int read = read_data(data, offset, &t);
  return read == 1 ? add_tensor(self, fqn, &t) : read;
}

static int encode_item(encoder* self, PyObject* item) {
  if (!shw_py_has_class(item, classes.item_class)) return 0;
  PyObject* index = PyObject_GetAttr(item, names.index);
  if (!index) return -1;
  if (!shw_py_has_class(index, classes.index_class)) {
    Py_DECREF(index);
    return 0;
  }
  PyObject* sources[] = {index, index, index, item, item, item};
  PyObject* wanted[] = {names.fqn,  names.offset,        names.index,
                        names.type, names.bytes_io_data, names.tensor_data};
  PyObject* part[6] = {NULL};
  int answer = 1;
  for (size_t i = 0; i < 6 && answer == 1; ++i) {
    part[i] = PyObject_GetAttr(sources[i], wanted[i]);
    if (!part[i]) answer = -1;
  }
  if (answer == 1) answer = store_parts(self, part);
  for (size_t i = 0; i < 6; ++i) Py_XDECREF(part[i]);
  Py_DECREF(index);
  return answer;
}

static int encode_list(encoder* self, PyObject* items) {
  const Py_ssize_t count = PyList_Check(items) ? PyList_Size(items) : -1;
  if (count < 0) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "expected a list of items");
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    const int answer = encode_item(self, PyList_GetItem(items, i));
    if (answer != 1) return answer;
  }
  return 1;
}

static PyObject* finished(encoder* self, int answer) {
  PyObject* made = NULL;
  if (answer == 1) {
    made = encoder_result(self);
  } else if (answer == 0) {
    made = Py_None;
    Py_INCREF(made);
  }
  encoder_end(self);
  return made;
}

/* Columns of a list of WriteItems, None when they cannot hold it. */
PyObject* shw_py_items_encode(PyObject* items) {
  if (!shw_py_item_classes()) return NULL;
  encoder self;
  const int started = encoder_start(&self);
  return finished(&self, started < 0 ? -1 : encode_list(&self, items));
}

/* ---- values of a state dict ---- */

/* 1 when a method of the value without arguments answers true. */
static int answers_true(PyObject* value, PyObject* method) {
  PyObject* bound = PyObject_GetAttr(value, method);
  PyObject* answer = bound ? PyObject_CallNoArgs(bound) : NULL;
  const int yes = answer ? PyObject_IsTrue(answer) : -1;
  Py_XDECREF(bound);
  Py_XDECREF(answer);
  return yes;
}

/* A plain dense tensor by the exchange table: 1, 0 when the table does not give it, -1
 * with an exception. */
static int add_plain(encoder* self, PyObject* name, PyObject* value, int may_be_pinned) {
  shw_dl_tensor found;
  if (classes.exchange->tensor_from_object(value, &found) != 0) {
    PyErr_Clear(); /* a meta, sparse or quantised tensor: described by its attributes */
    return 0;
  }
  tensor_item t;
  t.dtype = shw_dtype_from_dlpack(found.type);
  if (found.ndim > ITEM_RANK_MAX || !t.dtype || (found.ndim && !found.strides)) return 0;
  const size_t size = (size_t)found.ndim * sizeof(int64_t);
  t.ndim = found.ndim;
  t.flags = 0;
  t.hint = -1;
  if (size) memcpy(t.shape, found.shape, size);
  if (size) memcpy(t.sizes, found.shape, size);
  memset(t.offsets, 0, size);
  set_strides(&t, found.strides);
  PyObject* grad = PyObject_GetAttr(value, names.requires_grad);
  if (!grad) return -1;
  if (grad == Py_True) t.flags |= ITEM_REQUIRES_GRAD;
  Py_DECREF(grad);
  const int pinned = may_be_pinned ? answers_true(value, names.is_pinned) : 0;
  if (pinned < 0) return -1;
  if (pinned) t.flags |= ITEM_IS_PINNED;
  return add_tensor(self, name, &t);
}

static int is_plain_object(PyObject* value) {
  return value == Py_None || PyLong_CheckExact(value) || PyFloat_CheckExact(value) ||
         PyBool_Check(value) || PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) ||
         PyTuple_CheckExact(value) || PyList_CheckExact(value) || PyDict_CheckExact(value);
}

/* The items that the host makes for a value. */
static int add_by_items(encoder* self, PyObject* name, PyObject* value, PyObject* items_of) {
  PyObject* items = PyObject_CallFunctionObjArgs(items_of, name, value, NULL);
  if (!items) return -1;
  const int answer = encode_list(self, items);
  Py_DECREF(items);
  return answer;
}

static int add_value(encoder* self, PyObject* name, PyObject* value, PyObject* items_of,
                     int may_be_pinned) {
  if (is_plain_object(value)) return add_object(self, name);
  const int is_tensor = classes.exchange && (shw_py_has_class(value, classes.tensor_class) ||
                                             shw_py_has_class(value, classes.parameter_class));
  if (is_tensor && !PyObject_HasAttr(value, names.write_hook) &&
      !PyObject_HasAttr(value, names.global_shape)) {
    const int answer = add_plain(self, name, value, may_be_pinned);
    if (answer) return answer;
  }
  return add_by_items(self, name, value, items_of);
}

static int collect(encoder* self, PyObject* dict, PyObject* items_of, int may_be_pinned) {
  Py_ssize_t next = 0;
  PyObject *name, *value;
  int answer = 1;
  while (answer == 1 && PyDict_Next(dict, &next, &name, &value)) {
    Py_INCREF(name);
    Py_INCREF(value);
    self->key = name;
    answer = add_value(self, name, value, items_of, may_be_pinned);
    Py_DECREF(name);
    Py_DECREF(value);
  }
  return answer;
}

/* (columns, names of byte objects) of a flat state dict, None when columns cannot hold it.
 * `items_of` (name, value) gives the items of what is neither a plain dense tensor nor a plain
 * object. */
PyObject* shw_py_items_collect(PyObject* dict, PyObject* items_of, PyObject* pinned) {
  if (!shw_py_item_classes()) return NULL;
  if (!PyDict_Check(dict)) {
    PyErr_SetString(PyExc_TypeError, "expected a dict");
    return NULL;
  }
  const int may_be_pinned = PyObject_IsTrue(pinned);
  encoder self;
  int answer = encoder_start(&self) < 0 || may_be_pinned < 0 ? -1 : 1;
  PyObject* objects = self.objects = PyList_New(0);
  if (answer == 1) answer = objects ? collect(&self, dict, items_of, may_be_pinned) : -1;
  Py_XINCREF(objects);
  PyObject* made = finished(&self, answer);
  if (answer == 1 && made) made = Py_BuildValue("(NO)", made, objects);
  Py_XDECREF(objects);
  return made;
}

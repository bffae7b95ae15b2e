/* SPDX-License-Identifier: Apache-2.0
 *
 * ReadItems of torch as an array of integers and back. What the array cannot hold (classes of the
 * host, offsets that are no tuples) is no error: the caller keeps the objects then. Sizes and
 * indexes that follow one another and are equal are one object: nobody can change them. GIL
 * held. */
#include <string.h>

#include "bindings/python/torch_native/reads.h"

/* ---- items as numbers ---- */

/* Names by their number and numbers by their name. */
typedef struct {
  PyObject *list, *numbers;
  vector values; /* int64_t */
} read_encoder;

static int push(read_encoder* self, int64_t value) {
  return vector_append(&self->values, &value, sizeof value);
}

/* Number of a name; -1 with an exception. */
static int64_t number_of(read_encoder* self, PyObject* name) {
  PyObject* known = PyDict_GetItemWithError(self->numbers, name);
  if (known) return PyLong_AsLongLong(known);
  if (PyErr_Occurred()) return -1;
  const Py_ssize_t number = PyList_Size(self->list);
  PyObject* object = PyLong_FromSsize_t(number);
  const int failed = !object || PyDict_SetItem(self->numbers, name, object) < 0 ||
                     PyList_Append(self->list, name) < 0;
  Py_XDECREF(object);
  return failed ? -1 : number;
}

/* The values of a tuple behind their number, of None as READ_NONE: 1, 0 when it is neither, -1 with
 * an exception. */
static int put_sizes(read_encoder* self, PyObject* sizes, Py_ssize_t expected) {
  int64_t values[ITEM_RANK_MAX];
  if (sizes == Py_None && expected < 0) return push(self, READ_NONE) < 0 ? -1 : 1;
  const Py_ssize_t count = shw_py_int_values(sizes, values);
  if (count < 0 || (expected >= 0 && count != expected)) return 0;
  if (expected < 0 && push(self, count) < 0) return -1;
  return vector_append(&self->values, values, (size_t)count * sizeof(int64_t)) < 0 ? -1 : 1;
}

static int put_index(read_encoder* self, PyObject* index) {
  const item_names* names = shw_py_item_names();
  if (!shw_py_has_class(index, shw_py_item_classes()->index_class)) return index ? 0 : -1;
  PyObject* fqn = PyObject_GetAttr(index, names->fqn);
  PyObject* hint = fqn ? PyObject_GetAttr(index, names->index) : NULL;
  PyObject* offset = hint ? PyObject_GetAttr(index, names->offset) : NULL;
  int answer = offset ? PyUnicode_CheckExact(fqn) : -1;
  if (answer == 1) {
    int64_t value = READ_NONE;
    if (hint != Py_None) value = PyLong_CheckExact(hint) ? PyLong_AsLongLong(hint) : -1;
    if (PyErr_Occurred()) PyErr_Clear();
    if (hint != Py_None && value < 0) answer = 0;
    const int64_t number = answer == 1 ? number_of(self, fqn) : 0;
    if (answer == 1 && (number < 0 || push(self, number) < 0 || push(self, value) < 0)) answer = -1;
  }
  if (answer == 1) answer = put_sizes(self, offset, -1);
  Py_XDECREF(offset);
  Py_XDECREF(hint);
  Py_XDECREF(fqn);
  return answer;
}

/* The attribute through `put`. */
static int put_part(read_encoder* self, PyObject* item, PyObject* name, Py_ssize_t ndim) {
  PyObject* part = PyObject_GetAttr(item, name);
  if (!part) return -1;
  const int answer = ndim == READ_NONE ? put_index(self, part) : put_sizes(self, part, ndim);
  Py_DECREF(part);
  return answer;
}

static Py_ssize_t ndim_of(PyObject* item) {
  PyObject* lengths = PyObject_GetAttr(item, shw_py_item_names()->lengths);
  const Py_ssize_t ndim = lengths && PyTuple_Check(lengths) ? PyTuple_Size(lengths) : -1;
  Py_XDECREF(lengths);
  return ndim;
}

static int encode_read(read_encoder* self, PyObject* item) {
  const item_classes* classes = shw_py_item_classes();
  const item_names* names = shw_py_item_names();
  if (!shw_py_has_class(item, classes->read_class)) return 0;
  PyObject* type = PyObject_GetAttr(item, names->type);
  Py_XDECREF(type); /* a member of an enumeration lives on */
  if (type != classes->tensor_read && type != classes->bytes_read) return type ? 0 : -1;
  if (push(self, type == classes->tensor_read ? READ_TENSOR : READ_BYTES) < 0) return -1;
  int answer = put_part(self, item, names->dest_index, READ_NONE);
  if (answer == 1) answer = put_part(self, item, names->storage_index, READ_NONE);
  if (answer != 1) return answer;
  const Py_ssize_t ndim = ndim_of(item);
  if (ndim < 0 || ndim > ITEM_RANK_MAX) return PyErr_Occurred() ? -1 : 0;
  if (push(self, ndim) < 0) return -1;
  answer = put_part(self, item, names->dest_offsets, ndim);
  if (answer == 1) answer = put_part(self, item, names->storage_offsets, ndim);
  return answer == 1 ? put_part(self, item, names->lengths, ndim) : answer;
}

/* (names, number of items, values) of a list of ReadItems; None when numbers cannot hold it. */
PyObject* shw_py_reads_encode(PyObject* items) {
  if (!shw_py_item_classes()) return NULL;
  if (!PyList_Check(items)) {
    PyErr_SetString(PyExc_TypeError, "expected a list of items");
    return NULL;
  }
  read_encoder self = {PyList_New(0), PyDict_New(), {NULL, 0, 0}};
  const Py_ssize_t count = PyList_Size(items);
  int answer = self.list && self.numbers ? 1 : -1;
  for (Py_ssize_t i = 0; answer == 1 && i < count; ++i)
    answer = encode_read(&self, PyList_GetItem(items, i));
  PyObject* made = NULL;
  if (answer == 1)
    made = Py_BuildValue("(Ony#)", self.list, count, self.values.data ? self.values.data : "",
                         (Py_ssize_t)self.values.size);
  else if (answer == 0)
    made = Py_NewRef(Py_None);
  vector_free(&self.values);
  Py_XDECREF(self.list);
  Py_XDECREF(self.numbers);
  return made;
}

/* ---- numbers as items ---- */

/* The last size of one field of an item, with its values in the array. */
typedef struct {
  PyObject* made;
  const int64_t* values;
  int64_t count;
} last_size;

typedef struct {
  PyObject* made;
  const int64_t* values;
  int64_t count; /* of values, header included */
} last_index;

typedef struct {
  PyObject* names;
  const int64_t *at, *end;
  last_size sizes[5]; /* dest_offsets, storage_offsets, lengths, offsets of either index */
  last_index indexes[2];
} read_decoder;

static int damaged(void) {
  shw_py_fail(SHW_DATA_LOSS, "the reads of a load plan are damaged");
  return -1;
}

/* Takes `count` values from the front; NULL with an exception when there are not as many. */
static const int64_t* take(read_decoder* self, int64_t count) {
  if (count < 0 || count > ITEM_RANK_MAX || self->end - self->at < count) {
    damaged();
    return NULL;
  }
  self->at += count;
  return self->at - count;
}

static PyObject* next_size(read_decoder* self, last_size* last, int64_t count) {
  const int64_t* values = take(self, count);
  if (!values) return NULL;
  if (!last->made || last->count != count ||
      memcmp(last->values, values, (size_t)count * sizeof(int64_t)) != 0) {
    Py_XDECREF(last->made);
    *last = (last_size){shw_py_offsets_of(values, (uint64_t)count), values, count};
  }
  return last->made ? Py_NewRef(last->made) : NULL;
}

/* Index of destination (0) or chunk (1). */
static PyObject* next_index(read_decoder* self, int which) {
  const int64_t* begin = self->at;
  const int64_t* head = take(self, 3);
  if (!head) return NULL;
  last_index* last = &self->indexes[which];
  PyObject* name = head[0] >= 0 ? PyList_GetItem(self->names, (Py_ssize_t)head[0]) : NULL;
  if (!name || head[1] < READ_NONE || head[2] < READ_NONE) {
    PyErr_Clear();
    damaged();
    return NULL;
  }
  PyObject* offset = head[2] < 0 ? NULL : next_size(self, &self->sizes[3 + which], head[2]);
  if (head[2] >= 0 && !offset) return NULL;
  if (!last->made || last->count != self->at - begin ||
      memcmp(last->values, begin, (size_t)last->count * sizeof(int64_t)) != 0) {
    PyObject* hint = head[1] < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(head[1]);
    Py_XDECREF(last->made);
    *last =
        (last_index){hint ? shw_py_index_of(name, offset, hint) : NULL, begin, self->at - begin};
    Py_XDECREF(hint);
  }
  Py_XDECREF(offset);
  return last->made ? Py_NewRef(last->made) : NULL;
}

/* Puts what `value` gives in the place of a field. */
static int put_size(read_decoder* self, PyObject* item, PyObject* name, int place, int64_t ndim) {
  return shw_py_put(item, name, next_size(self, &self->sizes[place], ndim));
}

static PyObject* next_read(read_decoder* self) {
  const item_classes* classes = shw_py_item_classes();
  const item_names* names = shw_py_item_names();
  const int64_t* kind = take(self, 1);
  if (!kind) return NULL;
  if (kind[0] != READ_TENSOR && kind[0] != READ_BYTES) {
    damaged();
    return NULL;
  }
  PyObject* dest = next_index(self, 0);
  PyObject* stored = dest ? next_index(self, 1) : NULL;
  const int64_t* ndim = stored ? take(self, 1) : NULL;
  PyObject* made = ndim ? shw_py_instance(classes->read_class) : NULL;
  PyObject* type = kind[0] == READ_TENSOR ? classes->tensor_read : classes->bytes_read;
  /* The arrays hold the fields in another order than the class. */
  if (made && (shw_py_put(made, names->type, shw_py_shared(type)) < 0 ||
               shw_py_put(made, names->dest_index, shw_py_shared(dest)) < 0 ||
               put_size(self, made, names->dest_offsets, 0, ndim[0]) < 0 ||
               shw_py_put(made, names->storage_index, shw_py_shared(stored)) < 0 ||
               put_size(self, made, names->storage_offsets, 1, ndim[0]) < 0 ||
               put_size(self, made, names->lengths, 2, ndim[0]) < 0)) {
    Py_CLEAR(made);
  }
  Py_XDECREF(dest);
  Py_XDECREF(stored);
  return shw_py_untracked(made);
}

static PyObject* decode_reads(PyObject* names, Py_ssize_t count, const char* data,
                              Py_ssize_t size) {
  const int64_t* values = (const int64_t*)(const void*)data;
  read_decoder self = {.names = names, .at = values, .end = values + size / 8};
  /* The least item has 1 + 3 + 3 + 1 values. */
  if (size % 8 != 0 || (uintptr_t)data % 8 != 0 || count < 0 || count > size / 64) {
    damaged();
    return NULL;
  }
  PyObject* list = PyList_New(count);
  for (Py_ssize_t i = 0; list && i < count; ++i) {
    PyObject* item = next_read(&self);
    if (!item || PyList_SetItem(list, i, item) < 0) Py_CLEAR(list);
  }
  if (list && self.at != self.end) {
    damaged();
    Py_CLEAR(list);
  }
  for (size_t i = 0; i < 5; ++i) Py_XDECREF(self.sizes[i].made);
  for (size_t i = 0; i < 2; ++i) Py_XDECREF(self.indexes[i].made);
  return list;
}

/* The items of (names, number of items, values). */
PyObject* shw_py_reads_decode(PyObject* reads) {
  PyObject *names = NULL, *bytes = NULL;
  Py_ssize_t count = 0, size = 0;
  char* data = NULL;
  if (!PyTuple_Check(reads)) {
    PyErr_SetString(PyExc_TypeError, "expected a tuple of names, count and values");
    return NULL;
  }
  if (!shw_py_item_classes() || !PyArg_ParseTuple(reads, "OnS", &names, &count, &bytes) ||
      PyBytes_AsStringAndSize(bytes, &data, &size) < 0)
    return NULL;
  if (!PyList_Check(names)) {
    PyErr_SetString(PyExc_TypeError, "expected a list of names");
    return NULL;
  }
  const int was_on = shw_py_pause_collector();
  PyObject* list = decode_reads(names, count, data, size);
  shw_py_resume_collector(was_on);
  return list;
}

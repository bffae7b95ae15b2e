/* SPDX-License-Identifier: Apache-2.0
 *
 * Flat arrays of shw_entry_batch as items of a torch save plan, as chunks of its metadata, and
 * items that survive a merge. Every object that a host may change (properties, chunks) is made anew
 * for each item; sizes are shared. GIL held. */
#include "bindings/python/torch_native/items.h"

#include <stdlib.h>
#include <string.h>

/* ---- the arrays ---- */

static const void* bytes_in(PyObject* tuple, Py_ssize_t place, uint64_t* size) {
  PyObject* bytes = PyTuple_GetItem(tuple, place);
  char* data = NULL;
  Py_ssize_t length = 0;
  *size = 0;
  if (!bytes || (bytes == Py_None)) return NULL;
  if (PyBytes_AsStringAndSize(bytes, &data, &length) < 0) return NULL;
  *size = (uint64_t)length;
  return data;
}

/* Offsets that begin with 0, grow, and end with `end`. */
static int cuts(const uint64_t* offsets, uint64_t size, uint64_t count, uint64_t end) {
  if (!offsets || size != 8 * (count + 1) || offsets[0] != 0 || offsets[count] != end) return 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (offsets[i] > offsets[i + 1]) return 0;
  }
  return 1;
}

/* More boxes than that of a tensor without dimensions, which no values bound, are no plan. */
#define SCALAR_BOXES_MAX 1048576

/* Boxes of all entries have ndim values each, objects have one box, and attributes are those of
 * torch's items. */
static int boxes_fit(const item_columns* c, uint64_t value_count) {
  uint64_t values = 0;
  for (uint64_t i = 0; i < c->count; ++i) {
    const uint64_t ndim = c->shape_offsets[i + 1] - c->shape_offsets[i];
    const uint64_t boxes = c->box_ranges[i + 1] - c->box_ranges[i];
    const uint64_t attributes = c->attribute_offsets[i + 1] - c->attribute_offsets[i];
    const int listed =
        attributes >= 2 && c->attributes[c->attribute_offsets[i] + 1] == STRIDES_LISTED;
    const int known = attributes < 2 ||
                      (unsigned char)c->attributes[c->attribute_offsets[i] + 1] <= STRIDES_LISTED;
    const uint64_t boxes_max = ndim ? (value_count - values) / ndim : SCALAR_BOXES_MAX;
    if (ndim > ITEM_RANK_MAX || boxes > boxes_max || !known ||
        (c->dtypes[i] == 0 && (ndim || boxes != 1)) ||
        (c->dtypes[i] && attributes != 2 + (listed ? 8 * ndim : 0))) {
      return 0;
    }
    values += ndim * boxes;
  }
  return values == value_count;
}

/* Reads (count, names, name offsets, dtypes, shapes, shape offsets, box ranges, box offsets, box
 * sizes, attributes, attribute offsets[, numbers, order]) and checks that the lengths fit
 * together. */
static int read_columns(PyObject* tuple, item_columns* c) {
  memset(c, 0, sizeof *c);
  if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) < 11) {
    PyErr_SetString(PyExc_TypeError, "expected a tuple of columns");
    return -1;
  }
  static const int64_t no_values[1];
  uint64_t size[13] = {0};
  const void* data[13] = {NULL};
  c->count = PyLong_AsUnsignedLongLong(PyTuple_GetItem(tuple, 0));
  for (Py_ssize_t i = 1; i < 13 && i < PyTuple_Size(tuple); ++i)
    data[i] = bytes_in(tuple, i, &size[i]);
  if (PyErr_Occurred()) return -1;
  c->names = data[1] ? data[1] : "";
  c->name_offsets = data[2];
  c->dtypes = data[3];
  c->shapes = data[4] ? data[4] : no_values;
  c->shape_offsets = data[5];
  c->box_ranges = data[6];
  c->box_offsets = data[7] ? data[7] : no_values;
  c->box_sizes = data[8] ? data[8] : no_values;
  c->attributes = data[9] ? data[9] : "";
  c->attribute_offsets = data[10];
  c->numbers = data[11];
  c->order = data[12];
  const int fits = c->count < UINT32_MAX && size[3] == 4 * c->count &&
                   cuts(c->name_offsets, size[2], c->count, size[1]) &&
                   cuts(c->shape_offsets, size[5], c->count, size[4] / 8) &&
                   size[6] == 8 * (c->count + 1) &&
                   cuts(c->box_ranges, size[6], c->count, c->box_ranges[c->count]) &&
                   cuts(c->attribute_offsets, size[10], c->count, size[9]) && size[7] == size[8] &&
                   boxes_fit(c, size[7] / 8);
  c->box_count = fits ? c->box_ranges[c->count] : 0;
  if (!fits || (c->numbers && size[11] != 8 * c->box_count) ||
      (c->order && size[12] != 8 * c->box_count)) {
    shw_py_fail(SHW_DATA_LOSS, "lengths of the columns of a plan do not fit together");
    return -1;
  }
  return 0;
}

/* Columns, and what holds the memory that they are borrowed from. */
typedef struct {
  item_columns columns;
  shw_plan* plan;
  uint64_t* no_attributes;
} item_source;

static void release_source(item_source* source) {
  shw_plan_release(source->plan);
  free(source->no_attributes);
}

/* The columns of an opened plan, whose lengths the library has checked; attributes are the host's
 * and are checked here. */
static int read_entries(item_source* source) {
  item_columns* c = &source->columns;
  shw_entry_batch batch = SHW_ENTRY_BATCH_INIT;
  shw_error* error = NULL;
  const shw_status status = shw_plan_entries(source->plan, &batch, &error);
  if (status != SHW_OK) {
    shw_py_raise(status, error);
    return -1;
  }
  if (!batch.attributes) { /* no entry has any: there are byte objects only */
    source->no_attributes = calloc((size_t)batch.count + 1, sizeof(uint64_t));
    if (!source->no_attributes) {
      PyErr_NoMemory();
      return -1;
    }
  }
  *c = (item_columns){
      .count = batch.count,
      .box_count = batch.box_ranges[batch.count],
      .names = batch.names,
      .name_offsets = batch.name_offsets,
      .dtypes = batch.dtypes,
      .shapes = batch.shapes,
      .shape_offsets = batch.shape_offsets,
      .box_ranges = batch.box_ranges,
      .box_offsets = batch.box_offsets,
      .box_sizes = batch.box_sizes,
      .attributes = batch.attributes ? batch.attributes : "",
      .attribute_offsets = batch.attributes ? batch.attribute_offsets : source->no_attributes,
      .numbers = batch.numbers,
      .order = batch.order};
  /* Those of a local plan number pieces, which torch has no place for. */
  if (shw_plan_kind(source->plan) == SHW_PLAN_LOCAL_SAVE) c->numbers = NULL;
  uint64_t values = 0;
  for (uint64_t i = 0; i < c->count; ++i) {
    values +=
        (c->shape_offsets[i + 1] - c->shape_offsets[i]) * (c->box_ranges[i + 1] - c->box_ranges[i]);
  }
  if (boxes_fit(c, values)) return 0;
  shw_py_fail(SHW_DATA_LOSS, "attributes of a plan are not those of torch's items");
  return -1;
}

/* From a tuple of columns, which stays the caller's, or from a plan buffer. On failure nothing is
 * held. */
static int read_source(PyObject* object, item_source* source) {
  memset(source, 0, sizeof *source);
  if (PyTuple_Check(object)) return read_columns(object, &source->columns);
  Py_buffer view;
  if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) < 0) return -1;
  shw_error* error = NULL;
  const shw_status status = shw_plan_create(view.buf, (uint64_t)view.len, &source->plan, &error);
  PyBuffer_Release(&view);
  if (status != SHW_OK) {
    shw_py_raise(status, error);
    return -1;
  }
  if (read_entries(source) == 0) return 0;
  release_source(source);
  return -1;
}

/* ---- objects ---- */

static PyObject* strides_of(const char* attributes, const int64_t* sizes, uint64_t ndim) {
  int64_t strides[ITEM_RANK_MAX];
  if (attributes[1] == STRIDES_ABSENT) return shw_py_shared(Py_None);
  if (ndim == 0) return PyTuple_New(0); /* everybody's, so it stays as it is */
  if (attributes[1] == STRIDES_LISTED) {
    memcpy(strides, attributes + 2, ndim * sizeof(int64_t));
  } else {
    uint64_t expected = 1; /* modulo 2^64, as sizes are the host's */
    for (uint64_t d = ndim; d-- > 0;) {
      strides[d] = (int64_t)expected;
      expected *= sizes[d] > 1 ? (uint64_t)sizes[d] : 1;
    }
  }
  return shw_py_untracked(shw_py_int_tuple(strides, (Py_ssize_t)ndim));
}

/* An entry whose items are being made. */
typedef struct {
  PyObject *name, *size, *dtype; /* owned, owned, borrowed */
  const char* attributes;
  uint64_t ndim, number; /* number of the entry */
} open_entry;

static void close_entry(open_entry* e) {
  Py_CLEAR(e->name);
  Py_CLEAR(e->size);
}

static int start_entry(const item_columns* c, uint64_t number, open_entry* e) {
  const item_classes* classes = shw_py_item_classes();
  close_entry(e);
  e->number = number;
  e->ndim = c->shape_offsets[number + 1] - c->shape_offsets[number];
  e->attributes = c->attributes + c->attribute_offsets[number];
  e->name = PyUnicode_DecodeUTF8(
      c->names + c->name_offsets[number],
      (Py_ssize_t)(c->name_offsets[number + 1] - c->name_offsets[number]), "strict");
  if (!e->name || c->dtypes[number] == 0) return e->name ? 0 : -1;
  PyObject* key = PyLong_FromLong(c->dtypes[number]);
  e->dtype = key ? PyDict_GetItemWithError(classes->dtypes_of_numbers, key) : NULL;
  Py_XDECREF(key);
  e->size = shw_py_size_of(c->shapes + c->shape_offsets[number], e->ndim);
  if (e->dtype || PyErr_Occurred()) return e->size ? 0 : -1;
  shw_py_fail(SHW_UNIMPLEMENTED, "a plan names a dtype that torch does not have");
  return -1;
}

static PyObject* properties_of(const open_entry* e, const int64_t* sizes) {
  const item_classes* classes = shw_py_item_classes();
  const item_names* names = shw_py_item_names();
  PyObject* made = shw_py_instance(classes->properties_class);
  const int flags = e->attributes[0];
  if (made &&
      (shw_py_put(made, names->dtype, shw_py_shared(e->dtype)) < 0 ||
       shw_py_put(made, names->layout, shw_py_shared(classes->strided)) < 0 ||
       shw_py_put(made, names->requires_grad, PyBool_FromLong(flags & ITEM_REQUIRES_GRAD)) < 0 ||
       shw_py_put(made, names->memory_format, shw_py_shared(classes->contiguous)) < 0 ||
       shw_py_put(made, names->pin_memory, PyBool_FromLong(flags & ITEM_IS_PINNED)) < 0 ||
       shw_py_put(made, names->strides, strides_of(e->attributes, sizes, e->ndim)) < 0)) {
    Py_CLEAR(made);
  }
  return made;
}

static PyObject* chunk_of(const open_entry* e, PyObject* offsets, const int64_t* sizes) {
  const item_names* names = shw_py_item_names();
  PyObject* made = shw_py_instance(shw_py_item_classes()->chunk_class);
  if (!made) return NULL;
  int whole = e->attributes && !(e->attributes[0] & ITEM_IS_SHARD);
  for (uint64_t d = 0; whole && d < e->ndim; ++d)
    whole = PyLong_AsLongLong(PyTuple_GetItem(e->size, (Py_ssize_t)d)) == sizes[d];
  if (shw_py_put(made, names->offsets, shw_py_shared(offsets)) < 0 ||
      shw_py_put(made, names->sizes,
                 whole ? shw_py_shared(e->size) : shw_py_size_of(sizes, e->ndim)) < 0) {
    Py_CLEAR(made);
  }
  return made;
}

/* WriteItem; takes `index` and `data`. */
static PyObject* item_of(PyObject* index, PyObject* kind, PyObject* data) {
  const item_names* names = shw_py_item_names();
  PyObject* made = index && data ? shw_py_instance(shw_py_item_classes()->item_class) : NULL;
  if (made && (shw_py_put(made, names->index, shw_py_shared(index)) < 0 ||
               shw_py_put(made, names->type, shw_py_shared(kind)) < 0 ||
               shw_py_put(made, names->bytes_io_data, shw_py_shared(Py_None)) < 0 ||
               shw_py_put(made, names->tensor_data, shw_py_shared(data)) < 0)) {
    Py_CLEAR(made);
  }
  Py_XDECREF(index);
  Py_XDECREF(data);
  return shw_py_untracked(made);
}

/* TensorWriteData of a box. */
static PyObject* data_of(const open_entry* e, PyObject* offsets, const int64_t* sizes) {
  const item_names* names = shw_py_item_names();
  PyObject* made = shw_py_instance(shw_py_item_classes()->data_class);
  if (made && (shw_py_put(made, names->chunk, chunk_of(e, offsets, sizes)) < 0 ||
               shw_py_put(made, names->properties, properties_of(e, sizes)) < 0 ||
               shw_py_put(made, names->size, shw_py_shared(e->size)) < 0)) {
    Py_CLEAR(made);
  }
  return shw_py_untracked(made);
}

/* The item of box `box`, whose values begin at `value`. */
static PyObject* item_of_box(const item_columns* c, const open_entry* e, uint64_t box,
                             uint64_t value) {
  const item_classes* classes = shw_py_item_classes();
  if (c->dtypes[e->number] == 0)
    return item_of(shw_py_index_of(e->name, NULL, Py_None), classes->bytes_kind,
                   shw_py_shared(Py_None));
  const int flags = e->attributes[0];
  PyObject* hint;
  if (c->kept)
    hint = PyLong_FromUnsignedLong(c->kept[box]);
  else if (c->numbers)
    hint = PyLong_FromUnsignedLongLong(c->numbers[box]);
  else if (flags & ITEM_IS_NUMBERED)
    hint = PyLong_FromUnsignedLongLong(box - c->box_ranges[e->number]);
  else
    hint = shw_py_shared(Py_None);
  PyObject* offsets = hint ? shw_py_offsets_of(c->box_offsets + value, e->ndim) : NULL;
  PyObject* made = NULL;
  if (offsets) {
    made = item_of(shw_py_index_of(e->name, offsets, hint),
                   flags & ITEM_IS_SHARD ? classes->shard_kind : classes->tensor_kind,
                   data_of(e, offsets, c->box_sizes + value));
  }
  Py_XDECREF(offsets);
  Py_XDECREF(hint);
  return made;
}

/* Fills `list` in the order in which boxes stand, None for those that are not kept. */
static int fill_items(const item_columns* c, PyObject* list) {
  open_entry e = {0};
  uint64_t value = 0;
  int failed = 0;
  for (uint64_t entry = 0; !failed && entry < c->count; ++entry) {
    failed = start_entry(c, entry, &e) < 0;
    for (uint64_t box = c->box_ranges[entry]; !failed && box < c->box_ranges[entry + 1]; ++box) {
      const int kept = !c->kept || c->kept[box] != SHW_NOT_KEPT;
      PyObject* item = kept ? item_of_box(c, &e, box, value) : shw_py_shared(Py_None);
      failed = !item || PyList_SetItem(list, (Py_ssize_t)box, item) < 0;
      value += e.ndim;
    }
  }
  close_entry(&e);
  return failed ? -1 : 0;
}

/* Items of `list` that are kept, in the order in which the host listed them. Takes the list. */
static PyObject* arranged(const item_columns* c, PyObject* list) {
  PyObject* made = PyList_New(0);
  for (uint64_t i = 0; made && i < c->box_count; ++i) {
    const uint64_t box = c->order ? c->order[i] : i;
    PyObject* item = box < c->box_count ? PyList_GetItem(list, (Py_ssize_t)box) : NULL;
    if (!item) {
      Py_CLEAR(made);
      shw_py_fail(SHW_DATA_LOSS, "the order of a plan names an item that it lacks");
    } else if (item != Py_None && PyList_Append(made, item) < 0) {
      Py_CLEAR(made);
    }
  }
  Py_DECREF(list);
  return made;
}

/* The numbers of what a rank keeps, borrowed from `view`; NULL where `given` is None. */
static int read_kept(PyObject* given, uint64_t box_count, Py_buffer* view, const uint32_t** kept) {
  *kept = NULL;
  view->obj = NULL;
  if (given == Py_None) return 0;
  if (PyObject_GetBuffer(given, view, PyBUF_SIMPLE) < 0) return -1;
  *kept = view->buf;
  if ((uint64_t)view->len == box_count * sizeof(uint32_t) && (uintptr_t)view->buf % 4 == 0)
    return 0;
  PyBuffer_Release(view);
  shw_py_fail(SHW_INVALID_ARGUMENT, "the numbers of what a rank keeps are not those of its plan");
  return -1;
}

/* Columns or a plan buffer as a list of WriteItems; with the numbers of what the rank keeps only
 * those items, each with its number as position hint. */
PyObject* shw_py_items_decode(PyObject* given, PyObject* kept) {
  item_source source;
  Py_buffer numbers;
  if (!shw_py_item_classes() || read_source(given, &source) < 0) return NULL;
  item_columns* c = &source.columns;
  if (read_kept(kept, c->box_count, &numbers, &c->kept) < 0) {
    release_source(&source);
    return NULL;
  }
  const int was_on = shw_py_pause_collector();
  PyObject* list = PyList_New((Py_ssize_t)c->box_count);
  if (list && fill_items(c, list) < 0) Py_CLEAR(list);
  shw_py_resume_collector(was_on);
  if (list && (c->order || c->kept)) list = arranged(c, list);
  if (numbers.obj) PyBuffer_Release(&numbers);
  release_source(&source);
  return list;
}

/* (size, properties of the first chunk, chunks) of a tensor whose box values begin at `value`. */
static PyObject* stored_tensor(const item_columns* c, const open_entry* e, uint64_t value) {
  const uint64_t boxes = c->box_ranges[e->number + 1] - c->box_ranges[e->number];
  static const int64_t no_sizes[ITEM_RANK_MAX];
  PyObject* properties = properties_of(e, boxes ? c->box_sizes + value : no_sizes);
  PyObject* chunks = properties ? PyList_New((Py_ssize_t)boxes) : NULL;
  for (uint64_t i = 0; chunks && i < boxes; ++i, value += e->ndim) {
    PyObject* offsets = shw_py_offsets_of(c->box_offsets + value, e->ndim);
    PyObject* chunk = offsets ? chunk_of(e, offsets, c->box_sizes + value) : NULL;
    Py_XDECREF(offsets);
    if (!chunk || PyList_SetItem(chunks, (Py_ssize_t)i, chunk) < 0) Py_CLEAR(chunks);
  }
  PyObject* made = chunks ? PyTuple_Pack(3, e->size, properties, chunks) : NULL;
  Py_XDECREF(chunks);
  Py_XDECREF(properties);
  return made;
}

static PyObject* stored_rows(const item_columns* c) {
  PyObject* list = PyList_New((Py_ssize_t)c->count);
  open_entry e = {0};
  uint64_t value = 0;
  for (uint64_t entry = 0; list && entry < c->count; ++entry) {
    PyObject *found = NULL, *row = NULL;
    if (start_entry(c, entry, &e) == 0)
      found = c->dtypes[entry] ? stored_tensor(c, &e, value) : shw_py_shared(Py_None);
    if (found) row = PyTuple_Pack(2, e.name, found);
    Py_XDECREF(found);
    if (!row || PyList_SetItem(list, (Py_ssize_t)entry, row) < 0) Py_CLEAR(list);
    value += e.ndim * (c->box_ranges[entry + 1] - c->box_ranges[entry]);
  }
  close_entry(&e);
  return list;
}

/* One (name, None) per byte object and (name, (size, properties of the first chunk, chunks)) per
 * tensor, from columns or a plan buffer. */
PyObject* shw_py_items_stored(PyObject* given) {
  item_source source;
  if (!shw_py_item_classes() || read_source(given, &source) < 0) return NULL;
  const int was_on = shw_py_pause_collector();
  PyObject* list = stored_rows(&source.columns);
  shw_py_resume_collector(was_on);
  release_source(&source);
  return list;
}

/* ---- items that survive a merge ---- */

/* The tensor item again, of the same kind, with another position hint. */
static PyObject* renumbered(PyObject* item, PyObject* kind, uint64_t number) {
  const item_names* names = shw_py_item_names();
  PyObject* index = PyObject_GetAttr(item, names->index);
  PyObject* fqn = index ? PyObject_GetAttr(index, names->fqn) : NULL;
  PyObject* offset = fqn ? PyObject_GetAttr(index, names->offset) : NULL;
  PyObject* hint = offset ? PyLong_FromUnsignedLongLong(number) : NULL;
  PyObject* data = hint ? PyObject_GetAttr(item, names->tensor_data) : NULL;
  PyObject* made =
      data ? item_of(shw_py_index_of(fqn, offset, hint), kind, shw_py_shared(data)) : NULL;
  PyObject* all[] = {index, fqn, offset, hint, data};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) Py_XDECREF(all[i]);
  return made;
}

/* The items of a list whose plan a merge has numbered: those that its rank keeps, each with its
 * number as position hint. */
PyObject* shw_py_items_keep(PyObject* items, PyObject* given) {
  const item_classes* classes = shw_py_item_classes();
  Py_buffer numbers;
  const uint32_t* kept;
  if (!classes) return NULL;
  if (!PyList_Check(items) || given == Py_None) {
    PyErr_SetString(PyExc_TypeError, "expected a list of items and numbers");
    return NULL;
  }
  const uint64_t count = (uint64_t)PyList_Size(items);
  if (read_kept(given, count, &numbers, &kept) < 0) return NULL;
  const int was_on = shw_py_pause_collector();
  PyObject* out = PyList_New(0);
  for (uint64_t i = 0; out && i < count; ++i) {
    if (kept[i] == SHW_NOT_KEPT) continue;
    PyObject* item = PyList_GetItem(items, (Py_ssize_t)i);
    PyObject* kind = PyObject_GetAttr(item, shw_py_item_names()->type);
    PyObject* again = !kind                         ? NULL
                      : kind == classes->bytes_kind ? shw_py_shared(item)
                                                    : renumbered(item, kind, kept[i]);
    if (!again || PyList_Append(out, again) < 0) Py_CLEAR(out);
    Py_XDECREF(again);
    Py_XDECREF(kind);
  }
  shw_py_resume_collector(was_on);
  PyBuffer_Release(&numbers);
  return out;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Load planning for torch: stored chunks and wanted boxes of many tensors become descriptions, the
 * library matches them, and the matches become the array of reads.h. What a description
 * cannot hold (boxes that leave their tensor, classes of the host) is no error: the caller goes
 * item by item then. The GIL is given up while the library works. */
#include "bindings/python/torch_native/reads.h"

#include <string.h>

enum { STORED = 0, WANTED = 1, SIDES = 2 };
enum { BYTE_DTYPE = SHW_UINT8 }; /* elements are only counted */

/* Boxes of all tensors of one side. */
typedef struct {
  vector ranges, offsets, sizes; /* uint64_t (count + 1), int64_t, int64_t */
  uint64_t count;
} box_columns;

/* Tensors that stand on both sides under one name and shape. */
typedef struct {
  vector names, name_offsets, dtypes, shapes, shape_offsets;
  box_columns boxes[SIDES];
} read_columns;

static int read_columns_start(read_columns* self) {
  const uint64_t zero = 0;
  memset(self, 0, sizeof *self);
  vector* begins[] = {&self->name_offsets, &self->shape_offsets, &self->boxes[STORED].ranges,
                      &self->boxes[WANTED].ranges};
  for (size_t i = 0; i < sizeof begins / sizeof begins[0]; ++i) {
    if (vector_append(begins[i], &zero, sizeof zero) < 0) return -1;
  }
  return 0;
}

static void read_columns_end(read_columns* self) {
  vector* all[] = {&self->names, &self->name_offsets, &self->dtypes, &self->shapes,
                   &self->shape_offsets};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) vector_free(all[i]);
  for (int side = 0; side < SIDES; ++side) {
    vector_free(&self->boxes[side].ranges);
    vector_free(&self->boxes[side].offsets);
    vector_free(&self->boxes[side].sizes);
  }
}

/* ---- rows of the host as columns ---- */

/* Shape of the tensor whose boxes are read. */
typedef struct {
  Py_ssize_t ndim;
  int64_t values[ITEM_RANK_MAX];
} tensor_shape;

static int add_box(box_columns* self, const tensor_shape* shape, const int64_t* offsets,
                   const int64_t* sizes) {
  const size_t size = (size_t)shape->ndim * sizeof(int64_t);
  for (Py_ssize_t d = 0; d < shape->ndim; ++d) {
    if (offsets[d] < 0 || sizes[d] < 0 || sizes[d] > shape->values[d] ||
        offsets[d] > shape->values[d] - sizes[d])
      return 0;
  }
  ++self->count;
  return vector_append(&self->offsets, offsets, size) < 0 ||
                 vector_append(&self->sizes, sizes, size) < 0
             ? -1
             : 1;
}

static int add_chunk(box_columns* self, const tensor_shape* shape, PyObject* chunk) {
  const item_names* names = shw_py_item_names();
  int64_t offset_values[ITEM_RANK_MAX], size_values[ITEM_RANK_MAX];
  PyObject* offsets = PyObject_GetAttr(chunk, names->offsets);
  PyObject* sizes = offsets ? PyObject_GetAttr(chunk, names->sizes) : NULL;
  int answer = sizes ? shw_py_int_values(offsets, offset_values) == shape->ndim &&
                           shw_py_int_values(sizes, size_values) == shape->ndim
                     : -1;
  Py_XDECREF(offsets);
  Py_XDECREF(sizes);
  return answer == 1 ? add_box(self, shape, offset_values, size_values) : answer;
}

/* The boxes of one tensor; `chunks` None = one box that is all of it. */
static int add_boxes(box_columns* self, const tensor_shape* shape, PyObject* chunks) {
  static const int64_t zeros[ITEM_RANK_MAX];
  int answer = 1;
  if (chunks == Py_None) {
    answer = add_box(self, shape, zeros, shape->values);
  } else if (!PyList_Check(chunks)) {
    return 0;
  }
  for (Py_ssize_t i = 0; chunks != Py_None && answer == 1 && i < PyList_Size(chunks); ++i)
    answer = add_chunk(self, shape, PyList_GetItem(chunks, i));
  if (answer != 1) return answer;
  return vector_append(&self->ranges, &self->count, sizeof self->count) < 0 ? -1 : 1;
}

/* A row is (name, shape, stored chunks, wanted boxes); of a byte object all but the name are
 * None. */
static int add_row(read_columns* self, PyObject* row) {
  PyObject *name, *size, *stored, *wanted;
  if (!PyTuple_Check(row)) {
    PyErr_SetString(PyExc_TypeError, "expected a tuple per row");
    return -1;
  }
  if (!PyArg_ParseTuple(row, "OOOO", &name, &size, &stored, &wanted)) return -1;
  if (!PyUnicode_CheckExact(name)) return 0;
  if (size == Py_None) return 1;
  tensor_shape shape;
  shape.ndim = shw_py_int_values(size, shape.values);
  if (shape.ndim < 0) return 0;
  Py_ssize_t length = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name, &length);
  if (!text) {
    PyErr_Clear(); /* half of a surrogate pair */
    return 0;
  }
  const int32_t dtype = BYTE_DTYPE;
  if (vector_append(&self->names, text, (size_t)length) < 0 ||
      vector_append(&self->dtypes, &dtype, sizeof dtype) < 0 ||
      vector_append(&self->shapes, shape.values, (size_t)shape.ndim * sizeof(int64_t)) < 0)
    return -1;
  const uint64_t name_end = self->names.size, shape_end = VECTOR_COUNT(self->shapes, int64_t);
  if (vector_append(&self->name_offsets, &name_end, sizeof name_end) < 0 ||
      vector_append(&self->shape_offsets, &shape_end, sizeof shape_end) < 0)
    return -1;
  const int answer = add_boxes(&self->boxes[STORED], &shape, stored);
  return answer == 1 ? add_boxes(&self->boxes[WANTED], &shape, wanted) : answer;
}

/* ---- the library ---- */

static shw_entry_batch batch_of(const read_columns* c, int side) {
  shw_entry_batch batch = SHW_ENTRY_BATCH_INIT;
  batch.count = VECTOR_COUNT(c->dtypes, int32_t);
  batch.names = c->names.data;
  batch.name_offsets = (const uint64_t*)(void*)c->name_offsets.data;
  batch.dtypes = (const int32_t*)(void*)c->dtypes.data;
  batch.shapes = (const int64_t*)(void*)c->shapes.data;
  batch.shape_offsets = (const uint64_t*)(void*)c->shape_offsets.data;
  batch.box_ranges = (const uint64_t*)(void*)c->boxes[side].ranges.data;
  batch.box_offsets = (const int64_t*)(void*)c->boxes[side].offsets.data;
  batch.box_sizes = (const int64_t*)(void*)c->boxes[side].sizes.data;
  return batch;
}

static shw_match_options by_sweep(void) {
  shw_match_options options = SHW_MATCH_OPTIONS_INIT;
  options.order = SHW_MATCH_BY_SWEEP;
  options.cover = SHW_COVER_OFF;
  return options;
}

static shw_status match(const read_columns* c, const shw_match_options* options, shw_buffer** out,
                        shw_error** error) {
  shw_describe_options described = SHW_DESCRIBE_OPTIONS_INIT;
  described.kind = SHW_PLAN_MERGED_SAVE;
  const shw_entry_batch stored = batch_of(c, STORED), wanted = batch_of(c, WANTED);
  shw_buffer* buffer = NULL;
  shw_plan* plan = NULL;
  shw_status status = shw_plan_describe(&described, &stored, &buffer, error);
  if (status == SHW_OK)
    status = shw_plan_create(shw_buffer_data(buffer), shw_buffer_size(buffer), &plan, error);
  if (status == SHW_OK) status = shw_plan_match(options, plan, &wanted, out, error);
  shw_plan_release(plan);
  shw_buffer_release(buffer);
  return status;
}

/* ---- matches as reads ---- */

/* What the library found, and where the next tensor begins in it. */
typedef struct {
  const read_columns* tensors;
  const uint64_t *wanted, *chunks, *begins;
  const int64_t *dest, *storage, *lengths;
  uint64_t tensor;
  size_t part_value, value[SIDES]; /* in dest, storage and lengths; in the boxes of either side */
  int doubtful; /* parts of a box of this tensor may share elements, and volumes prove nothing */
} found_matches;

/* Where something is wanted that the chunks do not fill. */
typedef struct {
  Py_ssize_t row; /* -1 = nowhere */
  uint64_t box, filled;
} unfilled_box;

static uint64_t volume(const int64_t* sizes, size_t ndim) {
  uint64_t elements = 1;
  for (size_t d = 0; d < ndim; ++d) elements *= (uint64_t)sizes[d];
  return elements;
}

static int64_t* put_index(int64_t* at, Py_ssize_t row, uint64_t hint, const int64_t* offsets,
                          size_t ndim) {
  *at++ = row;
  *at++ = (int64_t)hint;
  *at++ = (int64_t)ndim;
  for (size_t d = 0; d < ndim; ++d) *at++ = offsets[d];
  return at;
}

static int64_t* put_values(int64_t* at, const int64_t* values, size_t ndim) {
  for (size_t d = 0; d < ndim; ++d) *at++ = values[d];
  return at;
}

/* Compares part `i` of a box with the part before it. They come in the order of a grid, dimension s
 * first, where s is the first dimension in which their intervals differ, else the lowest such
 * dimension is, and the part begins there where the one before it has ended, or later. Gives those
 * of `firsts`, a bit per s, that hold. Parts that are in the order of one grid all along share no
 * element: up to the dimension of their first difference intervals only move on. */
static uint64_t in_grid_order(const found_matches* m, size_t ndim, uint64_t firsts) {
  const int64_t *begin = m->dest + m->part_value, *length = m->lengths + m->part_value;
  const int64_t *begin_before = begin - ndim, *length_before = length - ndim;
  uint64_t equal = 0, after = 0;
  int lowest_is_after = -1; /* none differs yet */
  for (size_t d = 0; d < ndim; ++d) {
    const int moves_on = begin[d] >= begin_before[d] + length_before[d];
    if (moves_on) after |= UINT64_C(1) << d;
    if (begin[d] == begin_before[d] && length[d] == length_before[d])
      equal |= UINT64_C(1) << d;
    else if (lowest_is_after < 0)
      lowest_is_after = moves_on;
  }
  return firsts & (after | (lowest_is_after == 1 ? equal : 0));
}

static int add_object_read(vector* out, Py_ssize_t row) {
  const int64_t values[] = {READ_BYTES, row, READ_NONE, READ_NONE, row, READ_NONE,
                            READ_NONE,  1,   0,         0,         0};
  return vector_append(out, values, sizeof values);
}

/* Appends the reads of the next tensor; `filled` gets the elements of each of its wanted boxes. */
static int add_tensor_reads(vector* out, found_matches* m, Py_ssize_t row, uint64_t* filled) {
  const read_columns* c = m->tensors;
  const uint64_t* shape_offsets = (const uint64_t*)(void*)c->shape_offsets.data;
  const size_t ndim = shape_offsets[m->tensor + 1] - shape_offsets[m->tensor];
  const uint64_t first = ((const uint64_t*)(void*)c->boxes[WANTED].ranges.data)[m->tensor];
  const int64_t* wanted = (const int64_t*)(void*)c->boxes[WANTED].offsets.data + m->value[WANTED];
  const int64_t* stored = (const int64_t*)(void*)c->boxes[STORED].offsets.data + m->value[STORED];
  const uint64_t begin = m->begins[m->tensor], end = m->begins[m->tensor + 1];
  int64_t* at = vector_push(out, (end - begin) * (8 + 5 * ndim) * sizeof(int64_t));
  if (!at) return -1;
  uint64_t firsts = UINT64_MAX; /* of the box so far */
  m->doubtful = 0;
  for (uint64_t i = begin; i < end; ++i) {
    const uint64_t box = m->wanted[i] - first;
    *at++ = READ_TENSOR;
    at = put_index(at, row, box, wanted + box * ndim, ndim);
    at = put_index(at, row, m->chunks[i], stored + m->chunks[i] * ndim, ndim);
    *at++ = (int64_t)ndim;
    at = put_values(at, m->dest + m->part_value, ndim);
    at = put_values(at, m->storage + m->part_value, ndim);
    at = put_values(at, m->lengths + m->part_value, ndim);
    const int is_next = i > begin && m->wanted[i - 1] == m->wanted[i];
    firsts = is_next ? in_grid_order(m, ndim, firsts) : UINT64_MAX;
    m->doubtful |= firsts == 0;
    filled[box] += volume(m->lengths + m->part_value, ndim);
    m->part_value += ndim;
  }
  return 0;
}

/* Goes to the next tensor; notes the first box that is not filled. */
static void end_tensor(found_matches* m, Py_ssize_t row, const uint64_t* filled,
                       unfilled_box* unfilled) {
  const read_columns* c = m->tensors;
  const uint64_t* shape_offsets = (const uint64_t*)(void*)c->shape_offsets.data;
  const size_t ndim = shape_offsets[m->tensor + 1] - shape_offsets[m->tensor];
  const int64_t* sizes = (const int64_t*)(void*)c->boxes[WANTED].sizes.data + m->value[WANTED];
  for (int side = 0; side < SIDES; ++side) {
    const uint64_t* ranges = (const uint64_t*)(void*)c->boxes[side].ranges.data + m->tensor;
    const uint64_t boxes = ranges[1] - ranges[0];
    m->value[side] += boxes * ndim;
    for (uint64_t box = 0; side == WANTED && unfilled->row < 0 && box < boxes; ++box) {
      if (filled[box] < volume(sizes + box * ndim, ndim))
        *unfilled = (unfilled_box){row, box, filled[box]};
    }
  }
  ++m->tensor;
}

static int append_number(PyObject* list, Py_ssize_t value) {
  PyObject* number = PyLong_FromSsize_t(value);
  const int failed = !number || PyList_Append(list, number) < 0;
  Py_XDECREF(number);
  return failed ? -1 : 0;
}

/* `doubtful` gets the rows of tensors whose volumes prove nothing. */
static int add_reads(vector* out, PyObject* rows, found_matches* m, unfilled_box* unfilled,
                     PyObject* doubtful) {
  const uint64_t* ranges = (const uint64_t*)(void*)m->tensors->boxes[WANTED].ranges.data;
  vector filled = {NULL, 0, 0};
  int failed = 0;
  for (Py_ssize_t row = 0; !failed && row < PyList_Size(rows); ++row) {
    if (PyTuple_GetItem(PyList_GetItem(rows, row), 1) == Py_None) {
      failed = add_object_read(out, row) < 0;
      continue;
    }
    const size_t size = (ranges[m->tensor + 1] - ranges[m->tensor]) * sizeof(uint64_t);
    filled.size = 0;
    uint64_t* volumes = vector_push(&filled, size);
    failed = !volumes;
    if (!failed) {
      memset(volumes, 0, size);
      failed = add_tensor_reads(out, m, row, volumes) < 0;
    }
    if (!failed && m->doubtful) failed = append_number(doubtful, row) < 0;
    if (!failed) end_tensor(m, row, volumes, unfilled);
  }
  vector_free(&filled);
  return failed ? -1 : 0;
}

static PyObject* names_of(PyObject* rows) {
  const Py_ssize_t count = PyList_Size(rows);
  PyObject* names = PyList_New(count);
  for (Py_ssize_t i = 0; names && i < count; ++i)
    PyList_SetItem(names, i, Py_NewRef(PyTuple_GetItem(PyList_GetItem(rows, i), 0)));
  return names;
}

static found_matches matches_of(const read_columns* tensors, const shw_buffer* buffer) {
  return (found_matches){.tensors = tensors,
                         .wanted = shw_buffer_part_data(buffer, 0),
                         .chunks = shw_buffer_part_data(buffer, 1),
                         .dest = shw_buffer_part_data(buffer, 2),
                         .storage = shw_buffer_part_data(buffer, 3),
                         .lengths = shw_buffer_part_data(buffer, 4),
                         .begins = shw_buffer_part_data(buffer, 5)};
}

/* `buffer` NULL = there are byte objects only. */
static PyObject* reads_of(PyObject* rows, const read_columns* tensors, const shw_buffer* buffer) {
  found_matches m = {.tensors = tensors};
  const uint64_t tensor_count = VECTOR_COUNT(tensors->dtypes, int32_t);
  Py_ssize_t count = PyList_Size(rows) - (Py_ssize_t)tensor_count;
  if (buffer) {
    m = matches_of(tensors, buffer);
    count += (Py_ssize_t)m.begins[tensor_count];
  }
  unfilled_box unfilled = {-1, 0, 0};
  vector out = {NULL, 0, 0};
  PyObject* made = NULL;
  PyObject* names = names_of(rows);
  PyObject* doubtful = PyList_New(0);
  if (names && doubtful && add_reads(&out, rows, &m, &unfilled, doubtful) == 0) {
    PyObject* hole = unfilled.row < 0
                         ? Py_NewRef(Py_None)
                         : Py_BuildValue("(nKK)", unfilled.row, (unsigned long long)unfilled.box,
                                         (unsigned long long)unfilled.filled);
    if (hole)
      made = Py_BuildValue("(Ony#NO)", names, count, out.data ? out.data : "", (Py_ssize_t)out.size,
                           hole, doubtful);
  }
  Py_XDECREF(names);
  Py_XDECREF(doubtful);
  vector_free(&out);
  return made;
}

/* Descriptions that the library refuses go item by item, as those do that cannot be made. */
static int is_refusal(shw_status status) {
  return status == SHW_INVALID_ARGUMENT || status == SHW_OUT_OF_RANGE ||
         status == SHW_ALREADY_EXISTS || status == SHW_UNIMPLEMENTED;
}

static PyObject* matched(PyObject* rows, const read_columns* tensors) {
  if (tensors->dtypes.size == 0) return reads_of(rows, tensors, NULL);
  shw_buffer* buffer = NULL;
  shw_error* error = NULL;
  shw_status status;
  const shw_match_options options = by_sweep();
  Py_BEGIN_ALLOW_THREADS status = match(tensors, &options, &buffer, &error);
  Py_END_ALLOW_THREADS if (is_refusal(status)) {
    shw_error_release(error);
    return Py_NewRef(Py_None);
  }
  if (status != SHW_OK) {
    shw_py_raise(status, error);
    return NULL;
  }
  PyObject* made = reads_of(rows, tensors, buffer);
  shw_buffer_release(buffer);
  return made;
}

static PyObject* proved(PyObject* rows, const read_columns* tensors) {
  (void)rows;
  shw_buffer* buffer = NULL;
  shw_error* error = NULL;
  shw_status status = SHW_OK;
  shw_match_options options = by_sweep();
  options.cover = SHW_COVER_FULL;
  options.flags = SHW_MATCH_FIRST_REPLICA;
  Py_BEGIN_ALLOW_THREADS status = match(tensors, &options, &buffer, &error);
  Py_END_ALLOW_THREADS shw_buffer_release(buffer);
  if (status == SHW_OK) Py_RETURN_TRUE;
  shw_py_raise(status, error);
  return NULL;
}

/* What `work` makes of the columns of rows; None for rows that no columns hold. */
static PyObject* with_columns(PyObject* rows, PyObject* (*work)(PyObject*, const read_columns*)) {
  if (!shw_py_item_classes()) return NULL;
  if (!PyList_Check(rows)) {
    PyErr_SetString(PyExc_TypeError, "expected a list of rows");
    return NULL;
  }
  read_columns tensors;
  int answer = read_columns_start(&tensors) < 0 ? -1 : 1;
  for (Py_ssize_t i = 0; answer == 1 && i < PyList_Size(rows); ++i)
    answer = add_row(&tensors, PyList_GetItem(rows, i));
  PyObject* made = NULL;
  if (answer == 1)
    made = work(rows, &tensors);
  else if (answer == 0)
    made = Py_NewRef(Py_None);
  read_columns_end(&tensors);
  return made;
}

/* (names, number of reads, values, (row, box, elements that are filled) of the first wanted box
 * that is not filled or None, rows whose chunks may share elements) for rows of (name, shape,
 * stored chunks, wanted boxes or None = all of it); of byte objects all but the name are None.
 * Chunks that share elements may hide a box that is not filled. None where the rows must be read
 * item by item. */
PyObject* shw_py_reads_plan(PyObject* rows) {
  return with_columns(rows, matched);
}

/* True where the chunks of tensors fill each element that is wanted, once; of chunks with equal
 * boxes one counts. Else the library's refusal, with the detail "cover" where that is the reason;
 * None where the rows must be read item by item. */
PyObject* shw_py_reads_prove(PyObject* rows) {
  return with_columns(rows, proved);
}

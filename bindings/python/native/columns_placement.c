/* SPDX-License-Identifier: Apache-2.0
 *
 * Placements of entries in columns: as the Python layer gives them, and those of values that say
 * themselves on which mesh and how they are placed, as torch's DTensor does. Such a value is read
 * by attributes, anew each time: only the number of a layout is remembered, by the mesh and the
 * placements themselves, which are kept alive for it. GIL held. */
#include "bindings/python/native/columns.h"

/* Layouts that are remembered; others are asked for, from a dictionary of the Python layer. */
#define KNOWN_LAYOUTS_MAX 16

typedef struct {
  PyObject *mesh, *placements; /* held */
  uint32_t number;
} known_layout;

static int push_int64s(vector* v, PyObject* sequence) {
  const Py_ssize_t count = PySequence_Size(sequence);
  int64_t* room = count < 0 ? NULL : vector_push(v, (size_t)count * sizeof *room);
  return room && shw_py_int64s(sequence, room, count) >= 0 ? 0 : -1;
}

typedef struct {
  uint32_t layout; /* number, 0 = none */
  uint64_t box_count;
  int32_t kind, replica_id;
} placement_row;

/* The fixed columns of an entry, after its global shape, boxes and fragments. */
static int push_row(columns* self, const placement_row* row) {
  const uint64_t* ranges = (const uint64_t*)self->box_ranges.data;
  const uint64_t boxes_end = ranges[VECTOR_COUNT(self->box_ranges, uint64_t) - 1] + row->box_count;
  const uint64_t shape_end = VECTOR_COUNT(self->global_shapes, int64_t);
  const uint64_t fragments_end = VECTOR_COUNT(self->fragments, int64_t);
  if (vector_append(&self->global_offsets, &shape_end, sizeof shape_end) < 0 ||
      vector_append(&self->box_ranges, &boxes_end, sizeof boxes_end) < 0 ||
      vector_append(&self->fragment_ends, &fragments_end, sizeof fragments_end) < 0 ||
      vector_append(&self->layout_indices, &row->layout, sizeof row->layout) < 0 ||
      vector_append(&self->replica_ids, &row->replica_id, sizeof row->replica_id) < 0 ||
      vector_append(&self->kinds, &row->kind, sizeof row->kind) < 0) {
    return -1;
  }
  self->placed = 1;
  if (row->box_count) self->boxed = 1;
  return 0;
}

/* (global_shape, layout index, offsets of all boxes, sizes of all boxes, local offsets, box count,
 * kind, replica id, fragments) */
int columns_push_placement(columns* self, PyObject* placement) {
  PyObject *global_shape, *offsets, *sizes, *local_offsets, *fragments;
  unsigned layout;
  unsigned long long box_count;
  int kind, replica;
  if (!PyArg_ParseTuple(placement, "OIOOOKiiO", &global_shape, &layout, &offsets, &sizes,
                        &local_offsets, &box_count, &kind, &replica, &fragments)) {
    return -1;
  }
  const placement_row row = {layout, box_count, kind, replica};
  if (push_int64s(&self->global_shapes, global_shape) < 0 ||
      push_int64s(&self->box_offsets, offsets) < 0 || push_int64s(&self->box_sizes, sizes) < 0 ||
      push_int64s(&self->local_offsets, local_offsets) < 0 ||
      push_int64s(&self->fragments, fragments) < 0) {
    return -1;
  }
  return push_row(self, &row);
}

/* ---- values that place themselves ---- */

int columns_read_parts(PyObject* parts, part_route* into) {
  PyObject* laid;
  if (!PyArg_ParseTuple(parts, "OOOO", &into->type, &into->local_type, &laid, &into->number_of))
    return -1;
  into->laid = columns_of(laid);
  return into->laid ? 0 : -1;
}

/* 1 when two tuples of placements are equal, element by element, else 0; -1 with an exception. */
static int are_equal(PyObject* one, PyObject* other) {
  const Py_ssize_t count = PyTuple_Size(one);
  if (one == other) return 1;
  if (count != PyTuple_Size(other)) return 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *a = PyTuple_GetItem(one, i), *b = PyTuple_GetItem(other, i);
    if (a == b) continue;
    /* Versions of torch say that a strided shard equals a plain one of that dimension. */
    if (Py_TYPE(a) != Py_TYPE(b)) return 0;
    const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
    if (equal != 1) return equal;
  }
  return 1;
}

/* What is remembered of the layout, NULL when nothing is or, with an exception, on failure. */
static const known_layout* find_known(const columns* self, PyObject* mesh, PyObject* placements) {
  const known_layout* known = (const known_layout*)self->known.data;
  for (size_t i = 0; i < VECTOR_COUNT(self->known, known_layout); ++i) {
    if (known[i].mesh != mesh) continue;
    const int equal = are_equal(known[i].placements, placements);
    if (equal) return equal < 0 ? NULL : known + i;
  }
  return NULL;
}

/* Number of the layout, 0 with an exception. */
static uint32_t number_of(const part_route* route, PyObject* mesh, PyObject* placements) {
  columns* self = route->laid;
  const known_layout* known = find_known(self, mesh, placements);
  if (known) return known->number;
  PyObject* answer = PyErr_Occurred()
                         ? NULL
                         : PyObject_CallFunctionObjArgs(route->number_of, mesh, placements, NULL);
  if (!answer) return 0;
  const known_layout found = {mesh, placements, (uint32_t)PyLong_AsUnsignedLong(answer)};
  Py_DECREF(answer);
  if (PyErr_Occurred()) return 0;
  if (VECTOR_COUNT(self->known, known_layout) < KNOWN_LAYOUTS_MAX) {
    if (vector_append(&self->known, &found, sizeof found) < 0) return 0;
    Py_INCREF(mesh);
    Py_INCREF(placements);
  }
  return found.number;
}

void columns_forget_layouts(columns* self) {
  known_layout* known = (known_layout*)self->known.data;
  for (size_t i = 0; i < VECTOR_COUNT(self->known, known_layout); ++i) {
    Py_DECREF(known[i].mesh);
    Py_DECREF(known[i].placements);
  }
  self->known.size = 0;
}

/* What a value says of itself; owned. */
typedef struct {
  PyObject *local, *spec, *mesh, *placements, *shape;
} part;

/* An attribute by a name that is made once, as making it takes longer than the rest. NULL where
 * there is none or, with an exception, where reading it fails. */
static PyObject* attribute_of(PyObject* object, PyObject** name, const char* text) {
  if (!*name) *name = PyUnicode_InternFromString(text);
  PyObject* found = *name ? PyObject_GetAttr(object, *name) : NULL;
  if (!found && *name && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
  return found;
}

/* 1 when a value has all that is asked for, else 0, with an exception where reading it fails. */
static int read_part(PyObject* value, part* into) {
  static PyObject *local, *spec, *mesh, *placements, *shape;
  return (into->local = attribute_of(value, &local, "_local_tensor")) &&
         (into->spec = attribute_of(value, &spec, "_spec")) &&
         (into->mesh = attribute_of(into->spec, &mesh, "mesh")) &&
         (into->placements = attribute_of(into->spec, &placements, "placements")) &&
         (into->shape = attribute_of(value, &shape, "shape"));
}

/* Whether the local tensor is a plain one in memory of the host: one that is still on its way from
 * another rank has a type of its own. */
static int is_readable(const part_route* route, const part* of) {
  static PyObject* is_cpu;
  if ((PyObject*)Py_TYPE(of->local) != route->local_type || !PyTuple_CheckExact(of->placements))
    return 0;
  PyObject* answer = attribute_of(of->local, &is_cpu, "is_cpu");
  const int there = answer == Py_True;
  Py_XDECREF(answer);
  return there;
}

static int add_read(const part_route* route, const part* of, const char* name, uint64_t name_size) {
  columns* self = route->laid;
  const placement_row row = {number_of(route, of->mesh, of->placements), 0, SHW_KIND_AUTO, 0};
  const leaf_type* type = row.layout ? leaf_type_of(of->local) : NULL;
  const int taken = type ? columns_add_leaf(self, of->local, type, name, name_size) : -1;
  if (taken != 1) return taken;
  return push_int64s(&self->global_shapes, of->shape) < 0 || push_row(self, &row) < 0 ? -1 : 1;
}

int columns_add_part(const part_route* route, PyObject* value, const char* name,
                     uint64_t name_size) {
  part of = {NULL, NULL, NULL, NULL, NULL};
  int taken =
      read_part(value, &of) && is_readable(route, &of) ? add_read(route, &of, name, name_size) : 0;
  if (!taken && PyErr_Occurred()) taken = -1;
  PyObject* owned[] = {of.local, of.spec, of.mesh, of.placements, of.shape};
  for (size_t i = 0; i < sizeof owned / sizeof owned[0]; ++i) Py_XDECREF(owned[i]);
  return taken;
}

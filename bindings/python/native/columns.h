/* SPDX-License-Identifier: Apache-2.0
 *
 * Many tensors as the flat arrays of shw_tensor_batch, with what keeps their memory alive. Private
 * to columns*.c and hsdp.c. */
#ifndef SHW_PY_COLUMNS_H
#define SHW_PY_COLUMNS_H

#include "bindings/python/native/dlpack_abi.h"
#include "bindings/python/native/native.h"
#include "bindings/python/native/vector.h"

/* A DLPack tensor that was taken over; its deleter runs when the columns end. */
typedef struct {
  void* managed;
  int versioned;
} taken_dlpack;

typedef struct {
  PyObject_HEAD vector names, name_offsets; /* char, uint64_t (count + 1) */
  vector tensors;             /* shw_tensor; shape and strides are set when the batch is made */
  vector extents;             /* int64_t: shape, then strides where there are any */
  vector paths, path_offsets; /* char, uint64_t (count + 1); both empty while no entry has a path */
  vector kinds;               /* int32_t */
  vector replica_ids;         /* int32_t, placed columns only */
  vector global_shapes, global_offsets; /* int64_t, uint64_t (count + 1); placed columns only */
  vector box_ranges, box_offsets, box_sizes, local_offsets;
  vector fragments, fragment_ends; /* int64_t, uint64_t (count + 1); placed columns only */
  vector layout_indices;           /* uint32_t */
  vector views;                    /* Py_buffer that are held */
  vector owners;                   /* PyObject* that are held */
  vector dlpacks;                  /* taken_dlpack */
  vector known;                    /* known_layout, of columns_placement.c */
  uint64_t count;                  /* tensors in the arrays */
  PyObject* state;   /* where full arrays go, NULL when they grow: entries without placement only */
  uint64_t moved;    /* tensors that went there */
  uint64_t expected; /* entries of the container at hand, 0 once memory is set aside for them */
  int writable;      /* targets of a load: read-only memory is flagged */
  int placed;        /* entries carry a global shape with boxes or a layout */
  int boxed;         /* some entry lists a box */
  int sealed;        /* part of a batch: takes no more */
} columns;

/* The columns of an object of that type, NULL with TypeError. */
columns* columns_of(PyObject* object);

/* What a type is to the columns. */
enum { LEAF_OTHER = 0, LEAF_EXCHANGE = 1, LEAF_BUFFER = 2, LEAF_OWN = 3 };
typedef struct {
  int kind;
  const shw_dl_exchange* exchange;
  PyObject *is_conj, *is_neg; /* methods of torch tensors, NULL on other types */
} leaf_type;
/* Kind of a value, cached per type, NULL with an exception. Valid until the next call, which Python
 * code may make. */
const leaf_type* leaf_type_of(PyObject* value);

/* Appends the memory of one leaf: 1 when it was taken, 0 when the value is no tensor, -1 with an
 * exception. */
int columns_add_leaf(columns* self, PyObject* value, const leaf_type* type, const char* name,
                     uint64_t name_size);
/* Appends the placement of the entry that was added last: global shape and layout, or boxes; see
 * columns_placement.c. */
int columns_push_placement(columns* self, PyObject* placement);

/* Values of one type that are parts of tensors and say so by attributes, as torch's DTensor does:
 * where they go, and who numbers their layouts. All borrowed. */
typedef struct {
  PyObject *type, *local_type; /* exactly: subclasses are left to Python code */
  columns* laid;
  PyObject* number_of; /* (mesh, placements) -> number of the layout */
} part_route;
/* Reads (type, local type, columns, number_of). */
int columns_read_parts(PyObject* parts, part_route* into);
static inline int columns_is_part(const part_route* route, PyObject* value) {
  return route && (PyObject*)Py_TYPE(value) == route->type;
}
/* As columns_add_leaf, and appends the placement: name and path come after it. 0 when only Python
 * code knows what to do: nothing was appended. */
int columns_add_part(const part_route* route, PyObject* value, const char* name,
                     uint64_t name_size);
/* Drops what was remembered of layouts. */
void columns_forget_layouts(columns* self);

/* Tensors in the arrays before they go to the state: little enough to stay in the cache of a
 * core. */
#define COLUMNS_PIECE 1024
/* Gives full arrays to the state, which sets memory aside for what is expected: not before, as a
 * container of many entries may hold few tensors. -1 with an exception. */
int columns_move(columns* self);
/* Sets the shapes and strides of all tensors: the columns take no more. */
void columns_seal(columns* self);
/* Appends one tensor that is described by `tensor`; shape and strides are copied. Name and path
 * come after it. */
int columns_add_tensor(columns* self, const shw_tensor* tensor);

#endif

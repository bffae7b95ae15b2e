/* SPDX-License-Identifier: Apache-2.0
 *
 * The columns object: the batch that is made of its arrays, and the end of what they hold. GIL
 * held. */
#include "bindings/python/native/columns.h"

#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 24 /* of a tensor, usually */

static PyTypeObject* columns_type;

columns* columns_of(PyObject* object) {
  if (columns_type && PyObject_TypeCheck(object, columns_type)) return (columns*)object;
  PyErr_SetString(PyExc_TypeError, "expected columns");
  return NULL;
}

static void columns_dealloc(PyObject* object) {
  columns* self = (columns*)object;
  PyTypeObject* type = Py_TYPE(object);
  for (size_t i = 0; i < VECTOR_COUNT(self->views, Py_buffer); ++i)
    PyBuffer_Release((Py_buffer*)self->views.data + i);
  for (size_t i = 0; i < VECTOR_COUNT(self->owners, PyObject*); ++i)
    Py_DECREF(((PyObject**)self->owners.data)[i]);
  for (size_t i = 0; i < VECTOR_COUNT(self->dlpacks, taken_dlpack); ++i) {
    const taken_dlpack taken = ((taken_dlpack*)self->dlpacks.data)[i];
    if (taken.versioned) {
      shw_dl_managed_versioned* managed = taken.managed;
      if (managed->deleter) managed->deleter(managed);
    } else {
      shw_dl_managed* managed = taken.managed;
      if (managed->deleter) managed->deleter(managed);
    }
  }
  columns_forget_layouts(self);
  vector* all[] = {&self->names,         &self->name_offsets,   &self->tensors,
                   &self->extents,       &self->paths,          &self->path_offsets,
                   &self->kinds,         &self->global_shapes,  &self->global_offsets,
                   &self->box_ranges,    &self->box_offsets,    &self->box_sizes,
                   &self->local_offsets, &self->layout_indices, &self->views,
                   &self->owners,        &self->dlpacks,        &self->replica_ids,
                   &self->fragments,     &self->fragment_ends,  &self->known};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) free(all[i]->data);
  Py_XDECREF(self->state);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(object);
  Py_DECREF(type);
}

PyObject* shw_py_columns(PyObject* writable, PyObject* state) {
  columns* self = (columns*)PyType_GenericAlloc(columns_type, 0);
  if (!self) return NULL;
  self->writable = PyObject_IsTrue(writable) == 1;
  if (state != Py_None) {
    Py_INCREF(state);
    self->state = state;
  }
  const uint64_t zero = 0;
  vector* starts[] = {&self->name_offsets, &self->global_offsets, &self->box_ranges,
                      &self->fragment_ends};
  for (size_t i = 0; i < sizeof starts / sizeof starts[0]; ++i) {
    if (vector_append(starts[i], &zero, sizeof zero) < 0) {
      Py_DECREF(self);
      return NULL;
    }
  }
  return (PyObject*)self;
}

/* Tensors that are not yet in the state. */
PyObject* shw_py_columns_pending(PyObject* object) {
  const columns* self = columns_of(object);
  return self ? PyLong_FromUnsignedLongLong(self->count) : NULL;
}

static const int64_t strides_follow = 1; /* a mark: the strides of a tensor lie behind its shape */

/* Sets the shapes and strides of all tensors, now that the array of extents no longer moves. */
void columns_seal(columns* self) {
  if (self->sealed) return;
  shw_tensor* tensors = (shw_tensor*)self->tensors.data;
  const int64_t* next = (const int64_t*)self->extents.data;
  for (uint64_t i = 0; i < self->count; ++i) {
    tensors[i].shape = next;
    next += tensors[i].ndim;
    if (!tensors[i].strides) continue;
    tensors[i].strides = next;
    next += tensors[i].ndim;
  }
  self->sealed = 1;
}

int columns_add_tensor(columns* self, const shw_tensor* tensor) {
  if (self->sealed) {
    PyErr_SetString(PyExc_RuntimeError, "the columns are part of a state already");
    return -1;
  }
  if (self->state && self->count >= COLUMNS_PIECE && columns_move(self) < 0) return -1;
  const size_t ndim = (size_t)tensor->ndim;
  if (vector_append(&self->tensors, tensor, sizeof *tensor) < 0 ||
      vector_append(&self->extents, tensor->shape, ndim * sizeof(int64_t)) < 0) {
    return -1;
  }
  shw_tensor* added = (shw_tensor*)self->tensors.data + self->count;
  added->shape = NULL; /* set when the batch is made, and strides where they are marked */
  added->strides = tensor->strides ? &strides_follow : NULL;
  if (tensor->strides && vector_append(&self->extents, tensor->strides, ndim * sizeof(int64_t)) < 0)
    return -1;
  ++self->count;
  return 0;
}

/* One call for all tensors in the arrays; -1 with an exception. */
static int add_batch(columns* self, PyObject* capsule, shw_tensor_batch* batch) {
  void* state = NULL;
  if (shw_py_handle(capsule, "shw_state", &state) < 0) return -1;
  columns_seal(self);
  batch->count = self->count;
  batch->names = self->names.data;
  batch->name_offsets = (const uint64_t*)self->name_offsets.data;
  batch->tensors = (const shw_tensor*)self->tensors.data;
  if (self->path_offsets.size) {
    batch->paths = self->paths.data;
    batch->path_offsets = (const uint64_t*)self->path_offsets.data;
  }
  shw_error* error = NULL;
  const shw_status status = shw_state_add_tensors(state, batch, &error);
  if (status == SHW_OK) return 0;
  shw_py_raise(status, error);
  return -1;
}

static int reserve_expected(columns* self) {
  void* state = NULL;
  if (shw_py_handle(self->state, "shw_state", &state) < 0) return -1;
  shw_error* error = NULL;
  const shw_status status =
      shw_state_reserve(state, self->expected, self->expected * NAME_BYTES, &error);
  self->expected = 0;
  if (status == SHW_OK) return 0;
  shw_py_raise(status, error);
  return -1;
}

int columns_move(columns* self) {
  shw_tensor_batch batch;
  shw_tensor_batch_init(&batch, sizeof batch);
  if ((self->expected && reserve_expected(self) < 0) || add_batch(self, self->state, &batch) < 0)
    return -1;
  vector* emptied[] = {&self->names, &self->tensors, &self->extents, &self->paths,
                       &self->path_offsets};
  for (size_t i = 0; i < sizeof emptied / sizeof emptied[0]; ++i) emptied[i]->size = 0;
  self->name_offsets.size = sizeof(uint64_t);
  self->moved += self->count;
  self->count = 0;
  self->sealed = 0;
  return 0;
}

PyObject* shw_py_columns_add_to_state(PyObject* object, PyObject* capsule, PyObject* layout_list,
                                      PyObject* rank_object) {
  columns* self = columns_of(object);
  const long rank = PyLong_AsLong(rank_object);
  if (!self || PyErr_Occurred()) return NULL;
  void** layouts = NULL;
  shw_tensor_batch batch;
  shw_tensor_batch_init(&batch, sizeof batch);
  if (shw_py_handles(layout_list, "shw_layout", &layouts) < 0) {
    PyMem_Free(layouts);
    return NULL;
  }
  batch.layout_count = (uint64_t)PyList_Size(layout_list);
  if (self->kinds.size) batch.kinds = (const int32_t*)self->kinds.data;
  if (self->replica_ids.size) batch.replica_ids = (const int32_t*)self->replica_ids.data;
  if (self->placed) {
    batch.global_shapes = (const int64_t*)self->global_shapes.data;
    batch.global_shape_offsets = (const uint64_t*)self->global_offsets.data;
    if (self->fragments.size) {
      batch.grid_fragments = (const int64_t*)self->fragments.data;
      batch.grid_offsets = (const uint64_t*)self->fragment_ends.data;
    }
    if (batch.layout_count) {
      batch.layouts = (const shw_layout* const*)layouts;
      batch.layout_indices = (const uint32_t*)self->layout_indices.data;
    }
    if (!batch.layout_count || self->boxed) {
      batch.box_ranges = (const uint64_t*)self->box_ranges.data;
      batch.box_offsets = (const int64_t*)self->box_offsets.data;
      batch.box_sizes = (const int64_t*)self->box_sizes.data;
      batch.local_offsets = (const int64_t*)self->local_offsets.data;
    }
  }
  batch.rank = (int32_t)rank;
  const int failed = add_batch(self, capsule, &batch);
  PyMem_Free(layouts);
  if (failed) return NULL;
  Py_RETURN_NONE;
}

/* Reads one box (offsets None = the whole tensor) into the only tensor of the columns; gives the
 * report. */
PyObject* shw_py_checkpoint_read(PyObject* capsule, PyObject* index_object, PyObject* offset_object,
                                 PyObject* size_object, PyObject* object) {
  columns* self = columns_of(object);
  void* checkpoint = NULL;
  const uint64_t index = PyLong_AsUnsignedLongLong(index_object);
  if (!self || PyErr_Occurred() || shw_py_handle(capsule, "shw_checkpoint", &checkpoint) < 0)
    return NULL;
  if (self->count != 1) {
    PyErr_SetString(PyExc_ValueError, "expected columns of one tensor");
    return NULL;
  }
  int64_t offsets[64], sizes[64];
  shw_box_batch batch;
  shw_box_batch_init(&batch, sizeof batch);
  if (offset_object != Py_None) {
    if (shw_py_int64s(offset_object, offsets, 64) < 0 || shw_py_int64s(size_object, sizes, 64) < 0)
      return NULL;
    batch.box_offsets = offsets;
    batch.box_sizes = sizes;
  }
  columns_seal(self);
  batch.count = 1;
  batch.tensors = &index;
  batch.targets = (const shw_tensor*)self->tensors.data;
  shw_report* report = NULL;
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status = shw_checkpoint_read_boxes(checkpoint, &batch, &report, &error);
  Py_END_ALLOW_THREADS if (status == SHW_OK) return shw_py_own_report(report);
  shw_py_raise(status, error);
  return NULL;
}

static PyType_Slot columns_slots[] = {
    {Py_tp_dealloc, (void*)columns_dealloc}, {Py_tp_doc, "Tensors in flat arrays."}, {0, NULL}};
static PyType_Spec columns_spec = {"shardwright._native._shw_native.Columns", sizeof(columns), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   columns_slots};

int shw_py_init_columns(PyObject* module) {
  columns_type = (PyTypeObject*)PyType_FromSpec(&columns_spec);
  if (!columns_type || PyModule_AddObjectRef(module, "Columns", (PyObject*)columns_type) < 0)
    return -1;
  return 0;
}

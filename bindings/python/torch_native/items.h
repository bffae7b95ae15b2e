/* SPDX-License-Identifier: Apache-2.0
 *
 * Items of a torch save plan as the flat arrays of shw_entry_batch and back.
 *
 * Attributes of a tensor entry: one byte of flags, one byte that says how strides are kept, then
 * the strides (int64_t) where they are neither absent nor row-major. Byte objects have no
 * attributes. GIL held. */
#ifndef SHW_PY_TORCH_ITEMS_H
#define SHW_PY_TORCH_ITEMS_H

#include "bindings/python/native/dlpack_abi.h"
#include "bindings/python/native/native.h"
#include "bindings/python/native/vector.h"

enum { ITEM_IS_SHARD = 1, ITEM_IS_NUMBERED = 2, ITEM_REQUIRES_GRAD = 4, ITEM_IS_PINNED = 8 };
enum { STRIDES_ABSENT = 0, STRIDES_ROW_MAJOR = 1, STRIDES_LISTED = 2 };
#define ITEM_RANK_MAX 64

/* Classes and constants of torch, set once by shw_py_items_configure; borrowed from the tuple that
 * is kept. */
typedef struct {
  PyObject *index_class, *item_class, *data_class, *chunk_class, *properties_class, *size_class;
  PyObject *tensor_kind, *shard_kind, *bytes_kind; /* members of WriteItemType */
  PyObject *strided, *contiguous; /* layout and memory format that are understood */
  PyObject *numbers_of_dtypes, *dtypes_of_numbers; /* dicts */
  PyObject *tensor_class, *parameter_class; /* of plain tensors; subclasses describe themselves */
  PyObject *read_class, *tensor_read, *bytes_read; /* ReadItem and members of LoadItemType */
  const shw_dl_exchange* exchange;                 /* of plain tensors, NULL where they have none */
} item_classes;

/* Interned names of attributes. */
typedef struct {
  PyObject *fqn, *index, *offset, *type, *bytes_io_data, *tensor_data, *chunk, *properties, *size,
      *offsets, *sizes, *dtype, *layout, *requires_grad, *memory_format, *pin_memory, *strides,
      *write_hook, *global_shape, *is_pinned, *dest_index, *dest_offsets, *storage_index,
      *storage_offsets, *lengths;
} item_names;

/* ---- functions of the module ---- */

/* Takes (MetadataIndex, WriteItem, TensorWriteData, ChunkStorageMetadata, TensorProperties,
 * torch.Size, WriteItemType.TENSOR, .SHARD, .BYTE_IO, torch.strided, torch.contiguous_format,
 * {dtype: number}, {number: dtype}, torch.Tensor, torch.nn.Parameter, ReadItem,
 * LoadItemType.TENSOR, .BYTE_IO), or a function that makes this tuple when it is first needed:
 * making it uses the library, after which no forked child can. */
PyObject* shw_py_items_configure(PyObject* classes);
PyObject* shw_py_items_encode(PyObject* items);
PyObject* shw_py_items_collect(PyObject* dict, PyObject* items_of, PyObject* may_be_pinned);
/* `plan` is a plan buffer or its columns. */
PyObject* shw_py_items_decode(PyObject* plan, PyObject* kept);
PyObject* shw_py_items_stored(PyObject* plan);
PyObject* shw_py_items_keep(PyObject* items, PyObject* kept);

/* ---- items_encode.c ---- */

/* What was configured, or NULL with RuntimeError. */
const item_classes* shw_py_item_classes(void);
const item_names* shw_py_item_names(void);

/* Values of a tuple of integers; their number, -1 for anything else. Sets no exception. */
Py_ssize_t shw_py_int_values(PyObject* tuple, int64_t* values);
/* 1 for an instance of exactly that class; 0 for NULL. */
int shw_py_has_class(PyObject* object, PyObject* expected);

/* ---- items_objects.c: objects of torch without their constructors ---- */

/* Many objects are made at once and none is dropped: collections between them would find nothing.
 * Gives whether the collector was on, for the call that puts it back. */
int shw_py_pause_collector(void);
void shw_py_resume_collector(int was_on);
/* An instance of a dataclass without its fields. */
PyObject* shw_py_instance(PyObject* class);
/* Sets an attribute past a frozen class; takes `value`, which may be NULL with an exception. */
int shw_py_put(PyObject* object, PyObject* name, PyObject* value);
/* Takes an object out of the collector's sight: what never changes and holds only texts, numbers
 * and its like cannot be part of a cycle. Without it every full collection of the host would walk
 * through millions of items. NULL stays. */
PyObject* shw_py_untracked(PyObject* object);
/* A new reference. */
PyObject* shw_py_shared(PyObject* object);
/* torch.Size of integers; of offsets, which are often zeros and then one object for all. */
PyObject* shw_py_size_of(const int64_t* values, uint64_t count);
PyObject* shw_py_offsets_of(const int64_t* values, uint64_t ndim);
/* MetadataIndex: fqn, index and, unless NULL, offset, in the order in which torch pickles them. */
PyObject* shw_py_index_of(PyObject* name, PyObject* offset, PyObject* hint);

/* The arrays of a batch of entries, borrowed from the bytes objects of a tuple. */
typedef struct {
  uint64_t count, box_count;
  const char *names, *attributes;
  const uint64_t *name_offsets, *shape_offsets, *box_ranges, *attribute_offsets;
  const int32_t* dtypes;
  const int64_t *shapes, *box_offsets, *box_sizes;
  const uint64_t *numbers, *order; /* NULL = as they stand */
  const uint32_t* kept;            /* per box, its number or SHW_NOT_KEPT; NULL = no merge yet */
} item_columns;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Hand-written native part of the Python module: what SWIG typemaps alone cannot do. Every function
 * of PyObject that python.i declares gives a new reference, or NULL with an exception set. All are
 * called with the GIL held; those that block give it up inside. Only the limited API of CPython
 * 3.11 is used. */
#ifndef SHW_PY_NATIVE_H
#define SHW_PY_NATIVE_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

#include "shardwright/shardwright.h"

/* One waiting slice of 100 ms: after it signals are looked at. */
#define SHW_PY_SLICE_NS 100000000

/* ---- errors.c: statuses to exceptions and back ---- */

/* Sets the exception of a failed call; takes `error`, which may be NULL. */
void shw_py_raise(shw_status status, shw_error* error);
/* Sets the exception of a status with a text of our own. Returns NULL. */
PyObject* shw_py_fail(shw_status status, const char* format, ...);
/* Turns the exception that is set into a status and an error object; for callbacks. */
shw_status shw_py_status_of_exception(shw_error** err);
PyObject* shw_py_set_error_hooks(PyObject* factory, PyObject* translator);
/* 1 after set_finalizing: Python may not be entered any more. */
int shw_py_finalizing(void);
PyObject* shw_py_set_finalizing(void);
PyObject* shw_py_leak(PyObject* object);
PyObject* shw_py_versions(void);

/* ---- handles.c: capsules that release themselves ---- */

#define SHW_PY_EACH_HANDLE(X) \
  X(context)                  \
  X(layout)                   \
  X(state)                    \
  X(save_planner)             \
  X(load_planner)             \
  X(plan)                     \
  X(checkpoint)               \
  X(storage)                  \
  X(collective)               \
  X(collective_group)         \
  X(job)                      \
  X(report)                   \
  X(job_description)          \
  X(global_plan)

#define SHW_PY_DECLARE_OWN(noun) PyObject* shw_py_own_##noun(shw_##noun* handle);
SHW_PY_EACH_HANDLE(SHW_PY_DECLARE_OWN)
#undef SHW_PY_DECLARE_OWN

/* Pointer of a capsule, NULL for None; -1 with an exception for anything else and for closed
 * handles. */
int shw_py_handle(PyObject* object, const char* name, void** out);
/* Releases the handle inside a capsule now; a later use is FAILED_PRECONDITION. Closing twice is
 * fine. */
PyObject* shw_py_close(PyObject* handle);

/* ---- arguments.c: texts, byte lists, options, attributes ---- */

typedef struct {
  char* data;
  uint64_t* offsets;
  uint64_t count;
} shw_py_blob;

int shw_py_text(PyObject* object, char const** data, uint64_t* size);
int shw_py_no_nul(const char* data, uint64_t size, const char* parameter);
/* Attribute of an object, NULL with an exception. Its name is interned: the interpreter's cache of
 * attributes keeps every name that it has seen, and a name made for each call would be a new
 * one. */
PyObject* shw_py_attribute(PyObject* object, const char* name);
int shw_py_join(PyObject* list, shw_py_blob* blob);
int shw_py_indices(PyObject* list, shw_py_blob* blob);
void shw_py_blob_free(shw_py_blob* blob);
/* Takes the buffer: a list with one bytes object per part. */
PyObject* shw_py_parts(shw_buffer* buffer);

typedef struct {
  shw_save_options options;
} shw_py_save_options;
typedef struct {
  shw_load_options options;
} shw_py_load_options;
typedef struct {
  shw_checkpoint_options options;
} shw_py_checkpoint_options;
typedef struct {
  shw_estimate_options options;
} shw_py_estimate_options;
/* Fill options from the tuples of _options.py; texts and arrays stay borrowed from the tuple. */
int shw_py_save_options_read(PyObject* tuple, shw_py_save_options* filled,
                             shw_save_options const** out);
int shw_py_load_options_read(PyObject* tuple, shw_py_load_options* filled,
                             shw_load_options const** out);
int shw_py_checkpoint_options_read(PyObject* tuple, shw_py_checkpoint_options* filled,
                                   shw_checkpoint_options const** out);

int shw_py_estimate_options_read(PyObject* tuple, shw_py_estimate_options* filled,
                                 shw_estimate_options const** out);

/* ---- wait.c: context, jobs, log ---- */

PyObject* shw_py_context_create(PyObject* threads, PyObject* memory_budget, PyObject* log_level,
                                PyObject* plugin_path);
/* True when no job is left. */
PyObject* shw_py_context_shutdown(PyObject* context, PyObject* timeout_ns);
/* Records since the last call as a list of (level, component, message, dropped). */
PyObject* shw_py_log_drain(void);
/* True when the job is terminal (or staged), False when the time is over; raises the failure of the
 * job. A signal handler that raises cancels the job, waits for its terminal state and comes out. */
PyObject* shw_py_job_wait(PyObject* job, PyObject* timeout_ns, PyObject* staged);
PyObject* shw_py_job_progress(PyObject* job);
/* False when the job has ended; else its end wakes shw_py_job_ends_wait, once. */
PyObject* shw_py_job_watch(PyObject* job);
/* Waits, deaf to signals, until a watched job has ended since the last call; may return without
 * one. */
PyObject* shw_py_job_ends_wait(void);

/* ---- log_ring.c ---- */
void shw_py_log_put(void* user, int32_t level, const shw_log_record* record);

/* ---- results.c: structs as tuples ---- */

PyObject* shw_py_report_summary(PyObject* report);
PyObject* shw_py_plan_bytes(PyObject* plan);
PyObject* shw_py_plan_items(PyObject* plan);
PyObject* shw_py_layout_create(PyObject* specification);
PyObject* shw_py_layout_pieces(PyObject* layout, PyObject* shape, PyObject* rank);
PyObject* shw_py_layout_local_shape(PyObject* layout, PyObject* shape, PyObject* rank);
PyObject* shw_py_grid_place(PyObject* local_shape, PyObject* prepended, PyObject* places);
PyObject* shw_py_grid_pieces(PyObject* shard);
PyObject* shw_py_grid_flat_entry(PyObject* shard);
PyObject* shw_py_grid_flat_pieces(PyObject* shape, PyObject* entry, PyObject* chunk);
PyObject* shw_py_grid_overlap(PyObject* stored, PyObject* wanted, PyObject* index);
PyObject* shw_py_state_add_objects(PyObject* state, PyObject* batch);
PyObject* shw_py_state_object(PyObject* state, PyObject* index);
PyObject* shw_py_state_names(PyObject* state);
PyObject* shw_py_checkpoint_tensors(PyObject* checkpoint, PyObject* first, PyObject* count);
PyObject* shw_py_checkpoint_chunks(PyObject* checkpoint, PyObject* first, PyObject* count);
/* Sequence of integers as an array of the caller's capacity; the number of values or -1. */
Py_ssize_t shw_py_int64s(PyObject* sequence, int64_t* values, Py_ssize_t capacity);
/* Numbers of a sequence, to be freed; NULL and 0 for None. -1 with an exception. */
int shw_py_int32s(PyObject* sequence, int32_t** out, Py_ssize_t* count);
PyObject* shw_py_int_tuple(const int64_t* values, Py_ssize_t count);

/* ---- planning.c: descriptions in flat arrays; arrays are objects with the buffer protocol or None
 * ---- */

/* options: (kind, rank, world_size, kind globs, kind values, agreement); entries: the 17 arrays of
 * shw_entry_batch behind a count. Gives the plan as bytes. */
PyObject* shw_py_plan_describe(PyObject* options, PyObject* entries);
/* The arrays of a plan handle as (count, 17 memoryviews or None); they keep the plan alive. */
PyObject* shw_py_plan_entries(PyObject* plan);
/* options: (owner, preset, cover, verify_replicas); plans: list of buffers. Gives a list of
 * memoryviews. */
PyObject* shw_py_plan_merge(PyObject* options, PyObject* plans);
/* options: (order, cover, missing, flags). Gives six bytes objects. */
PyObject* shw_py_plan_match(PyObject* options, PyObject* stored, PyObject* wanted);
/* arrays: (weights, sets, secondary or None, set offsets, holders). Gives the owners as bytes. */
PyObject* shw_py_plan_owners(PyObject* arrays, PyObject* rank_count);
PyObject* shw_py_plan_digest(PyObject* plan);
PyObject* shw_py_content_digest(PyObject* data);
/* options: (rank, world_size, kind globs, kind values, agreement); layouts: list of handles or
 * None, or None. Gives [description, digest, part]. */
PyObject* shw_py_global_plan_describe(PyObject* options, PyObject* entries, PyObject* layouts);
PyObject* shw_py_global_plan_representatives(PyObject* digests);
/* options: (owner, preset, verify_replicas); descriptions, parts: lists of buffers. Gives a
 * handle. */
PyObject* shw_py_global_plan(PyObject* options, PyObject* digests, PyObject* descriptions,
                             PyObject* parts);
/* arguments: (rank, generation, 16 bytes or None). */
PyObject* shw_py_global_plan_write_list(PyObject* plan, PyObject* arguments);
PyObject* shw_py_global_plan_owners(PyObject* plan, PyObject* name);
PyObject* shw_py_global_plan_rank_bytes(PyObject* plan);
PyObject* shw_py_global_plan_json(PyObject* plan);
PyObject* shw_py_global_plan_digest(PyObject* plan);
PyObject* shw_py_global_plan_expand(PyObject* plan, const char* generation);

/* ---- tensor.c: the tensor type of the module ---- */

/* Describes a tensor object of this module; 0 when the object is something else. */
int shw_py_tensor_describe(PyObject* object, shw_tensor* out);
PyObject* shw_py_tensor_allocate(PyObject* tensor_type, PyObject* dtypes, PyObject* shapes);
PyObject* shw_py_tensor_view(PyObject* tensor_type, PyObject* tensor);
/* `__dlpack__` of a tensor that was made for the exchange, with these keywords. */
PyObject* shw_py_dlpack_of_copy(PyObject* tensor, PyObject* keywords);
int shw_py_init_types(PyObject* module);
int shw_py_init_columns(PyObject* module);
int shw_py_init_buffers(PyObject* module);

/* ---- columns.c: many tensors as flat arrays ---- */

PyObject* shw_py_set_classifier(PyObject* classifier);
PyObject* shw_py_columns(PyObject* writable, PyObject* state);
PyObject* shw_py_columns_collect(PyObject* columns, PyObject* container, PyObject* name,
                                 PyObject* path);
PyObject* shw_py_columns_add(PyObject* columns, PyObject* name, PyObject* path, PyObject* leaf,
                             PyObject* placement);
PyObject* shw_py_columns_add_flat(PyObject* columns, PyObject* arrays);
PyObject* shw_py_columns_pending(PyObject* columns);
PyObject* shw_py_columns_add_to_state(PyObject* columns, PyObject* state, PyObject* layouts,
                                      PyObject* rank);
PyObject* shw_py_checkpoint_read(PyObject* checkpoint, PyObject* index, PyObject* offsets,
                                 PyObject* sizes, PyObject* columns);

/* ---- columns_items*.c: items of torch save plans as flat arrays ---- */

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

/* ---- columns_reads*.c: items of torch load plans as one array ---- */

/* rows: list of (name, shape, stored chunks, wanted boxes or None = all of it); of byte objects all
 * but the name are None. Gives (names, number of reads, values, first wanted box that is not
 * filled, rows in doubt), None where rows go item by item. */
PyObject* shw_py_reads_plan(PyObject* rows);
/* True where the chunks in rows of tensors fill what is wanted once, None where rows go item by
 * item, else an error. */
PyObject* shw_py_reads_prove(PyObject* rows);
/* (names, number of reads, values) of a list of ReadItems or None, and back. */
PyObject* shw_py_reads_encode(PyObject* items);
PyObject* shw_py_reads_decode(PyObject* reads);

/* ---- host_storage.c, host_collective.c: Python objects as transports ---- */

PyObject* shw_py_storage_create(PyObject* storage);
PyObject* shw_py_storage_read(PyObject* storage, PyObject* key, PyObject* offset, PyObject* size);
PyObject* shw_py_storage_stat(PyObject* storage, PyObject* key);
PyObject* shw_py_collective_create(PyObject* collective);
PyObject* shw_py_collective_call(PyObject* collective, PyObject* operation, PyObject* arguments);

#endif

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
/* Most dimensions of a tensor. */
#define SHW_PY_RANK_MAX 64
#define SHW_PY_DIGEST_BYTES 16

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
/* Around a fork, on the thread that forks: no thread of the library is on its way into Python. */
PyObject* shw_py_fork_begins(void);
PyObject* shw_py_fork_ends(void);
PyObject* shw_py_fork_ends_in_child(void);
PyObject* shw_py_leak(PyObject* object);
PyObject* shw_py_versions(void);

/* ---- objects.c ---- */

/* Attribute of an object, NULL with an exception. Its name is interned: the interpreter's cache of
 * attributes keeps every name that it has seen, and a name made for each call would be a new
 * one. */
PyObject* shw_py_attribute(PyObject* object, const char* name);
PyObject* shw_py_int_tuple(const int64_t* values, Py_ssize_t count);
/* DLPack exchange table of major version 1 that a type offers, NULL when there is none. It lives as
 * long as the type. */
const struct shw_dl_exchange* shw_dl_exchange_of(PyObject* type);

/* ---- handles.c: capsules that release themselves ---- */

#define SHW_PY_EACH_HANDLE(X) \
  X(context)                  \
  X(layout)                   \
  X(mapping)                  \
  X(state)                    \
  X(save_planner)             \
  X(load_planner)             \
  X(load_exchange)            \
  X(plan)                     \
  X(checkpoint)               \
  X(storage)                  \
  X(collective)               \
  X(collective_group)         \
  X(job)                      \
  X(report)                   \
  X(job_description)          \
  X(global_plan)              \
  X(communicator)             \
  X(communicator_group)       \
  X(work)                     \
  X(device)                   \
  X(hsdp_mesh)                \
  X(hsdp)                     \
  X(hsdp_unit)

#define SHW_PY_DECLARE_OWN(noun) PyObject* shw_py_own_##noun(shw_##noun* handle);
SHW_PY_EACH_HANDLE(SHW_PY_DECLARE_OWN)
#undef SHW_PY_DECLARE_OWN

/* Pointer of a capsule, NULL for None; -1 with an exception for anything else and for closed
 * handles. */
int shw_py_handle(PyObject* object, const char* name, void** out);
/* Releases the handle inside a capsule now; a later use is FAILED_PRECONDITION. Closing twice is
 * fine. */
PyObject* shw_py_close(PyObject* handle);

/* ---- arguments.c: texts, byte lists, handles ---- */

typedef struct {
  char* data;
  uint64_t* offsets;
  uint64_t count;
} shw_py_blob;

int shw_py_text(PyObject* object, char const** data, uint64_t* size);
int shw_py_no_nul(const char* data, uint64_t size, const char* parameter);
/* A list of bytes and other buffers, one behind the other. */
int shw_py_join(PyObject* list, shw_py_blob* blob);
/* Pointers of a list of handles, NULL for None; to be freed by PyMem_Free, also after -1. */
int shw_py_handles(PyObject* list, const char* name, void*** out);
int shw_py_indices(PyObject* list, shw_py_blob* blob);
void shw_py_blob_free(shw_py_blob* blob);
/* Takes the buffer: a list with one bytes object per part. */
PyObject* shw_py_parts(shw_buffer* buffer);

/* ---- wait.c: context, jobs, log ---- */

PyObject* shw_py_context_create(PyObject* threads, PyObject* memory_budget, PyObject* log_level,
                                PyObject* texts); /* (plugin_path, machine) */
/* True when no job is left. */
PyObject* shw_py_context_shutdown(PyObject* context, PyObject* timeout_ns);
/* Records since the last call as a list of (level, component, message, dropped). */
PyObject* shw_py_log_drain(void);
/* Records below the level (SHW_LOG_) are left out from now on; before the first call all are. */
PyObject* shw_py_log_set_level(PyObject* level);
/* True when the job is terminal (or staged), False when the time is over; raises the failure of the
 * job. A signal handler that raises cancels the job, waits for its terminal state and comes out. */
PyObject* shw_py_job_wait(PyObject* job, PyObject* timeout_ns, PyObject* staged);
/* True when the operation has ended, False when the time is over; raises its failure. Signals are
 * looked at every 100 ms. */
PyObject* shw_py_work_wait(PyObject* work, PyObject* timeout_ns);
/* False when the job has ended; else its end wakes shw_py_job_ends_wait, once. */
PyObject* shw_py_job_watch(PyObject* job);
/* Waits, deaf to signals, until a watched job has ended since the last call; may return without
 * one. */
PyObject* shw_py_job_ends_wait(void);

/* ---- log_ring.c ---- */
void shw_py_log_put(void* user, int32_t level, const shw_log_record* record);

/* ---- results.c: arrays; rows are structs of structs.c and what they leave out ---- */

PyObject* shw_py_plan_bytes(PyObject* plan);
PyObject* shw_py_plan_items(PyObject* plan);
PyObject* shw_py_state_object(PyObject* state, PyObject* index);
PyObject* shw_py_state_names(PyObject* state);
PyObject* shw_py_checkpoint_tensors(PyObject* checkpoint, PyObject* first, PyObject* count);
PyObject* shw_py_checkpoint_chunks(PyObject* checkpoint, PyObject* first, PyObject* count);
/* Sequence of integers as an array of the caller's capacity; the number of values or -1. */
Py_ssize_t shw_py_int64s(PyObject* sequence, int64_t* values, Py_ssize_t capacity);

/* ---- layouts.c: pieces (offsets, sizes, local offset) ---- */

PyObject* shw_py_layout_pieces(PyObject* layout, PyObject* shape, PyObject* rank);
PyObject* shw_py_state_pieces(PyObject* state, PyObject* index);
PyObject* shw_py_grid_place(const shw_grid_shard* shard, PyObject* places);
PyObject* shw_py_grid_pieces(const shw_grid_shard* shard);
PyObject* shw_py_grid_flat_entry(const shw_grid_shard* shard);
PyObject* shw_py_grid_flat_pieces(PyObject* shape, PyObject* entry, PyObject* chunk);
PyObject* shw_py_grid_overlap(PyObject* stored, PyObject* wanted, PyObject* index);

/* ---- object_keys.c: names of cells of grids, as bytes ---- */

PyObject* shw_py_object_key(PyObject* key, PyObject* index, PyObject* shape);
/* (key, index, shape) */
PyObject* shw_py_object_key_parse(PyObject* name);

/* ---- planning.c ---- */

/* arrays: (weights, sets, secondary or None, set offsets, holders), each with the buffer protocol.
 * Gives the owners as bytes. */
PyObject* shw_py_plan_owners(PyObject* arrays, PyObject* rank_count);

/* ---- buffers.c: bytes that are not copied ---- */

/* Merges the plans of a list of buffers; gives a list of memoryviews of one block. */
PyObject* shw_py_plan_merge(const shw_merge_options* options, PyObject* plans);

/* ---- exchange.c ---- */

/* Handles of the exchange plans of a list of want lists. */
PyObject* shw_py_exchange_plans(PyObject* want_lists);
/* (outgoing, incoming): lists of memoryviews, one for each rank. They keep the exchange alive. */
PyObject* shw_py_exchange_begin_round(PyObject* exchange);

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
int shw_py_init_exchange(PyObject* module);
int shw_py_init_hosts(PyObject* module);

/* ---- columns.c: many tensors as flat arrays ---- */

PyObject* shw_py_set_classifier(PyObject* classifier);
PyObject* shw_py_columns(PyObject* writable, PyObject* state);
PyObject* shw_py_columns_collect(PyObject* columns, PyObject* container, PyObject* name,
                                 PyObject* path, PyObject* parts);
PyObject* shw_py_columns_add(PyObject* columns, PyObject* name, PyObject* path, PyObject* leaf,
                             PyObject* placement);
PyObject* shw_py_columns_add_flat(PyObject* columns, PyObject* arrays);
PyObject* shw_py_columns_pending(PyObject* columns);
PyObject* shw_py_columns_add_to_state(PyObject* columns, PyObject* state, PyObject* layouts,
                                      PyObject* rank);
PyObject* shw_py_checkpoint_read(PyObject* checkpoint, PyObject* index, PyObject* offsets,
                                 PyObject* sizes, PyObject* columns);

/* ---- hsdp.c ---- */

PyObject* shw_py_columns_declare(PyObject* columns, PyObject* name, PyObject* dtype,
                                 PyObject* shape);
PyObject* shw_py_hsdp_add_params(PyObject* unit, PyObject* columns, PyObject* rules);
PyObject* shw_py_hsdp_estimate(PyObject* units, PyObject* world, PyObject* options, PyObject* kind);
PyObject* shw_py_hsdp_add_grads(PyObject* unit, PyObject* indices, PyObject* columns,
                                PyObject* take);
/* (offsets, sizes, global shape). */
PyObject* shw_py_hsdp_box(PyObject* unit, PyObject* index);
/* A list of (address, shape, dtype, bytes); address 0 = no gradient. */
PyObject* shw_py_hsdp_views(PyObject* unit, PyObject* view);
PyObject* shw_py_hsdp_view_device(PyObject* unit, PyObject* view, PyObject* index);
PyObject* shw_py_hsdp_view_dlpack(PyObject* unit, PyObject* view, PyObject* index,
                                  PyObject* versioned);
PyObject* shw_py_hsdp_set_memory(PyObject* unit, PyObject* first, PyObject* addresses,
                                 PyObject* sizes);
PyObject* shw_py_hsdp_set_prefetch(PyObject* unit, PyObject* key, PyObject* units);
/* The work of an operation; what it reads and writes must live until that has ended. */
PyObject* shw_py_communicator_issue(PyObject* communicator, PyObject* operation, PyObject* call,
                                    PyObject* buffers);

/* ---- host_storage.c, host_collective.c: Python objects as transports ---- */

PyObject* shw_py_storage_create(PyObject* storage);
PyObject* shw_py_storage_read(PyObject* storage, PyObject* key, PyObject* offset, PyObject* size);
PyObject* shw_py_collective_create(PyObject* collective);
PyObject* shw_py_collective_create_node(PyObject* collective, PyObject* timeout_ns);
PyObject* shw_py_collective_call(PyObject* collective, PyObject* operation, PyObject* arguments);

#endif

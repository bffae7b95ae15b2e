/* SPDX-License-Identifier: Apache-2.0
 *
 * Python typemaps. Handles are capsules that release themselves; a status other than OK raises through the factory of
 * errors.py; `out` becomes the result; byte inputs are pinned for the call; the GIL is held except where annotations.i
 * switches %thread on. The generated module is private: every public name is hand-written in bindings/python.
 *
 * Structs are dictionaries of their fields on the way in and named tuples on the way out: structs.i is generated from the
 * headers and says which, native/structs.c does it. What needs more than a typemap (tensors in bulk, waiting, callbacks)
 * is C in bindings/python/native, declared at the end of this file. */
%{
#include "bindings/python/native/native.h"
#include "bindings/python/native/structs.h"
%}

%nothread;

%init %{
  if (shw_py_init_types(m) < 0) return -1;
%}

/* Errors are read by native/errors.c; structs and vtables are filled by hand-written C. */
%rename("$ignore", regextarget=1) "_init$";
%rename("$ignore", regextarget=1, fullname=1, %$isclass) ".*";
%ignore shw_error_code;
%ignore shw_error_message;
%ignore shw_error_detail_count;
%ignore shw_error_detail_at;
%ignore shw_error_is_retryable;
%ignore shw_error_cause;
%ignore shw_error_backtrace;
%ignore shw_error_create;
%ignore shw_error_release;
%ignore shw_get_api;
%ignore shw_abi_version;
%ignore shw_get_extension;
%ignore shw_buffer_create;
%ignore shw_buffer_create_parts;
%ignore shw_buffer_data;
%ignore shw_buffer_size;
%ignore shw_buffer_part_count;
%ignore shw_buffer_part_offsets;
%ignore shw_buffer_part_data;
%ignore shw_buffer_part_size;
%ignore shw_buffer_release;
%ignore shw_tensor_check;
%ignore shw_tensor_from_dlpack;
%ignore shw_tensor_from_dlpack_legacy;
%ignore shw_owned_tensor_create;
%ignore shw_owned_tensor_describe;
%ignore shw_owned_tensor_dlpack;
%ignore shw_owned_tensor_dlpack_legacy;
%ignore shw_owned_tensor_release;
%ignore shw_layout_box_count;
%ignore shw_layout_boxes;
%ignore shw_layout_local_offsets;
%ignore shw_save_options_set_metadata;
%ignore shw_state_add_tensor;
%ignore shw_state_add_tensors;
%ignore shw_state_add_dlpack;
%ignore shw_state_add_dlpack_legacy;
%ignore shw_state_add_object;
%ignore shw_state_tensor;
%ignore shw_state_global_shape;
%ignore shw_state_boxes;
%ignore shw_object_key;
%ignore shw_object_key_parse;
%ignore shw_state_object_data;
%ignore shw_plan_data;
%ignore shw_plan_size;
%ignore shw_plan_item_at;
%ignore shw_plan_merge;
%ignore shw_plan_merge_buffers;
%ignore shw_report_summarize;
%ignore shw_job_wait;
%ignore shw_job_wait_staged;
%ignore shw_job_error;
%ignore shw_job_on_done;
%ignore shw_cancellation_create;
%ignore shw_cancellation_cancel;
%ignore shw_cancellation_release;
%ignore shw_context_shutdown;
%ignore shw_exchange_plans;
%ignore shw_load_exchange_begin_round;
%ignore shw_context_create;
%ignore shw_checkpoint_tensor_infos;
%ignore shw_checkpoint_tensor_shape;
%ignore shw_checkpoint_chunk_infos;
%ignore shw_checkpoint_chunk_box;
%ignore shw_checkpoint_read_boxes;
%ignore shw_checkpoint_read_tensor;
%ignore shw_storage_create;
%ignore shw_storage_read;
%ignore shw_collective_create;
%ignore shw_collective_create_node;
%ignore shw_collective_barrier;
%ignore shw_collective_broadcast;
%ignore shw_collective_all_gather;
%ignore shw_collective_all_gather_v;
%ignore shw_collective_gather_v;
%ignore shw_collective_scatter_v;
%ignore shw_collective_all_to_all_v;
%ignore shw_collective_all_reduce_i64;
%rename("$ignore", regextarget=1) "^shw_(context|layout|mapping|state|save_planner|load_planner|load_exchange|plan|checkpoint|storage|collective|collective_group|job|report|job_description|global_plan|communicator|communicator_group|work|device|hsdp_mesh|hsdp|hsdp_unit)_release$";

%ignore shw_communicator_create;
%ignore shw_device_create;
%ignore shw_work_wait;
%ignore shw_work_poll;
%ignore shw_hsdp_estimate;
%ignore shw_hsdp_unit_box;
%ignore shw_hsdp_unit_set_memory;
%ignore shw_hsdp_unit_set_allocator;
%ignore shw_hsdp_unit_set_units;
%rename("$ignore", regextarget=1) "^shw_communicator_(all_gather|all_to_all|reduce_scatter|all_reduce|broadcast|barrier)$";
%rename("$ignore", regextarget=1) "^shw_hsdp_unit_(add_params|add_grads|view)(s|_dlpack|_dlpack_legacy|)$";

/* Status and error. */
%typemap(in, numinputs=0, noblock=1) shw_error **err (shw_error *error = NULL) { $1 = &error; }
%typemap(out, noblock=1) shw_status { $result = SWIG_Py_Void(); }
%typemap(argout, noblock=1) shw_error **err {
  if (result != SHW_OK) {
    shw_py_raise(result, *$1);
    Py_XDECREF($result);
    $result = NULL;
    SWIG_fail;
  }
}

/* Handles: capsules in and out; None is NULL. */
%define SHW_PY_HANDLE(NOUN)
%typemap(in) shw_##NOUN *, const shw_##NOUN * {
  void *pointer = NULL;
  if (shw_py_handle($input, "shw_" #NOUN, &pointer) < 0) SWIG_fail;
  $1 = ($1_ltype)pointer;
}
%typemap(in, numinputs=0, noblock=1) shw_##NOUN **out (shw_##NOUN *made = NULL) { $1 = &made; }
%typemap(argout, noblock=1) shw_##NOUN **out {
  if (result == SHW_OK) {
    Py_XDECREF($result);
    $result = shw_py_own_##NOUN(*$1);
  }
}
%enddef
SHW_PY_HANDLE(context)
SHW_PY_HANDLE(layout)
SHW_PY_HANDLE(mapping)
SHW_PY_HANDLE(state)
SHW_PY_HANDLE(save_planner)
SHW_PY_HANDLE(load_planner)
SHW_PY_HANDLE(load_exchange)
SHW_PY_HANDLE(plan)
SHW_PY_HANDLE(checkpoint)
SHW_PY_HANDLE(storage)
SHW_PY_HANDLE(collective)
SHW_PY_HANDLE(collective_group)
SHW_PY_HANDLE(job)
SHW_PY_HANDLE(report)
SHW_PY_HANDLE(job_description)
SHW_PY_HANDLE(global_plan)
SHW_PY_HANDLE(communicator)
SHW_PY_HANDLE(communicator_group)
SHW_PY_HANDLE(work)
SHW_PY_HANDLE(device)
SHW_PY_HANDLE(hsdp_mesh)
SHW_PY_HANDLE(hsdp)
SHW_PY_HANDLE(hsdp_unit)

/* Other results. A buffer is a list of bytes, one per part. */
%typemap(in, numinputs=0, noblock=1) shw_buffer **out (shw_buffer *made = NULL) { $1 = &made; }
%typemap(argout, noblock=1) shw_buffer **out {
  if (result == SHW_OK) {
    Py_XDECREF($result);
    $result = shw_py_parts(*$1);
  }
}
%typemap(in, numinputs=0, noblock=1) uint64_t *out (uint64_t number = 0) { $1 = &number; }
%typemap(argout, noblock=1) uint64_t *out {
  if (result == SHW_OK) {
    Py_XDECREF($result);
    $result = PyLong_FromUnsignedLongLong(*$1);
  }
}
%typemap(in, numinputs=0, noblock=1) int32_t *out (int32_t number = 0) { $1 = &number; }
%typemap(argout, noblock=1) int32_t *out {
  if (result == SHW_OK) {
    Py_XDECREF($result);
    $result = PyLong_FromLong(*$1);
  }
}

%typemap(in, numinputs=0, noblock=1) int64_t *out (int64_t number = 0) { $1 = &number; }
%typemap(argout, noblock=1) int64_t *out {
  if (result == SHW_OK) {
    Py_XDECREF($result);
    $result = PyLong_FromLongLong(*$1);
  }
}
%typemap(in, numinputs=0, noblock=1) double *out (double number = 0) { $1 = &number; }
%typemap(argout, noblock=1) double *out {
  if (result == SHW_OK) {
    Py_XDECREF($result);
    $result = PyFloat_FromDouble(*$1);
  }
}

/* Texts of the shape `const char *f(handle, uint64_t *size)` keep NUL. */
%typemap(in, numinputs=0, noblock=1) uint64_t *size (uint64_t text_size = 0) { $1 = &text_size; }
%typemap(argout, noblock=1) uint64_t *size {
  Py_XDECREF($result);
  $result = PyUnicode_DecodeUTF8(result ? result : "", result ? (Py_ssize_t)*$1 : 0, "replace");
}

/* Texts in: names as str or bytes with their size, paths as str or bytes without NUL, None is NULL. */
%typemap(in) (const char *name, uint64_t name_size), (const char *key, uint64_t key_size),
             (const char *prefix, uint64_t prefix_size),
             (const char *expected_version, uint64_t expected_version_size), (const char *config, uint64_t config_size), (const char *question, uint64_t question_size),
             (const char *message, uint64_t message_size) {
  if (shw_py_text($input, (const char **)&$1, &$2) < 0) SWIG_fail;
}
%typemap(in) const char *path, const char *source, const char *target, const char *root, const char *plugin, const char *name,
             const char *generation, const char *prefix {
  uint64_t size = 0;
  if (shw_py_text($input, (const char **)&$1, &size) < 0) SWIG_fail;
  if (shw_py_no_nul($1, size, "$1_name") < 0) SWIG_fail;
}

/* Bytes in: anything with the buffer protocol, pinned until the call has ended. */
%typemap(in) (const void *data, uint64_t size) (Py_buffer view, int held = 0),
             (const void *plan, uint64_t plan_size) (Py_buffer view, int held = 0) {
  if (PyObject_GetBuffer($input, &view, PyBUF_SIMPLE) < 0) SWIG_fail;
  held = 1;
  $1 = view.buf;
  $2 = (uint64_t)view.len;
}
%typemap(freearg, noblock=1) (const void *data, uint64_t size), (const void *plan, uint64_t plan_size) {
  if (held$argnum) PyBuffer_Release(&view$argnum);
}

/* A list of bytes as a blob and its offsets. */
%typemap(in) (const void *plans, const uint64_t *plan_offsets, uint64_t plan_count) (shw_py_blob blob = {0}),
             (const void *results, const uint64_t *result_offsets, uint64_t result_count) (shw_py_blob blob = {0}),
             (const void *descriptions, const uint64_t *description_offsets, uint64_t description_count)
               (shw_py_blob blob = {0}),
             (const void *parts, const uint64_t *part_offsets, uint64_t part_count) (shw_py_blob blob = {0}) {
  if (shw_py_join($input, &blob) < 0) SWIG_fail;
  $1 = blob.data;
  $2 = blob.offsets;
  $3 = blob.count;
}
%typemap(freearg, noblock=1) (const void *plans, const uint64_t *plan_offsets, uint64_t plan_count),
             (const void *results, const uint64_t *result_offsets, uint64_t result_count),
             (const void *descriptions, const uint64_t *description_offsets, uint64_t description_count),
             (const void *parts, const uint64_t *part_offsets, uint64_t part_count) {
  shw_py_blob_free(&blob$argnum);
}
%typemap(in) (const uint64_t *indices, uint64_t count) (shw_py_blob blob = {0}) {
  if (shw_py_indices($input, &blob) < 0) SWIG_fail;
  $1 = blob.offsets;
  $2 = blob.count;
}
%typemap(freearg, noblock=1) (const uint64_t *indices, uint64_t count) { shw_py_blob_free(&blob$argnum); }

/* Structs, by the generated tables. */
%define SHW_STRUCT_IN(NAME, CLASS)
%typemap(in) const NAME * (NAME filled, shw_py_held held = {0}) {
  if (shw_py_struct_read($input, &NAME##_table, &filled, &held) < 0) SWIG_fail;
  $1 = $input == Py_None ? NULL : &filled;
}
%typemap(freearg, noblock=1) const NAME * { shw_py_struct_free(&held$argnum); }
%enddef
%define SHW_STRUCT_OUT(NAME)
%typemap(in, numinputs=0, noblock=1) NAME *out (NAME made) {
  memset(&made, 0, sizeof made);
  made.struct_size = sizeof made;
  $1 = &made;
}
%typemap(argout, noblock=1) NAME *out {
  if (result == SHW_OK) {
    Py_XDECREF($result);
    $result = shw_py_struct_write(&NAME##_table, $1);
  }
}
%enddef
%define SHW_STRUCT_RESULT(FUNCTION, CLASS)
%enddef
%define SHW_STRUCT_CALL(FUNCTION)
%enddef
%define SHW_STRUCT_LIST(FUNCTION, NAME, CLASS, LIST)
%enddef
%include "structs.i"

/* Shapes in and out. */
%typemap(in) (const int64_t *shape, int32_t ndim) (int64_t extents[SHW_PY_RANK_MAX]) {
  const Py_ssize_t count = shw_py_int64s($input, extents, SHW_PY_RANK_MAX);
  if (count < 0) SWIG_fail;
  $1 = extents;
  $2 = (int32_t)count;
}
%typemap(in, numinputs=0, noblock=1) (int64_t *extents, uint64_t capacity, uint64_t *size)
    (int64_t values[SHW_PY_RANK_MAX], uint64_t count = 0) {
  $1 = values;
  $2 = SHW_PY_RANK_MAX;
  $3 = &count;
}
%typemap(argout, noblock=1) (int64_t *extents, uint64_t capacity, uint64_t *size) {
  if (result == SHW_OK) {
    Py_XDECREF($result);
    $result = shw_py_int_tuple($1, (Py_ssize_t)*$3);
  }
}
%typemap(in) int32_t rank {
  const long number = PyLong_AsLong($input);
  if (number == -1 && PyErr_Occurred()) SWIG_fail;
  if (number != (int32_t)number) {
    PyErr_SetString(PyExc_OverflowError, "a rank does not fit into 31 bits");
    SWIG_fail;
  }
  $1 = (int32_t)number;
}

/* Planning: digests of 16 bytes each, layouts of entries. */
%typemap(in) (const void *digests, uint64_t rank_count) (Py_buffer view, int held = 0) {
  if (PyObject_GetBuffer($input, &view, PyBUF_SIMPLE) < 0) SWIG_fail;
  held = 1;
  $1 = view.buf;
  $2 = (uint64_t)view.len / SHW_PY_DIGEST_BYTES;
}
%typemap(freearg, noblock=1) (const void *digests, uint64_t rank_count) {
  if (held$argnum) PyBuffer_Release(&view$argnum);
}
%typemap(in) const void *plan_digest {
  char *bytes = NULL;
  Py_ssize_t size = SHW_PY_DIGEST_BYTES;
  if ($input != Py_None && PyBytes_AsStringAndSize($input, &bytes, &size) < 0) SWIG_fail;
  if (size != SHW_PY_DIGEST_BYTES) {
    PyErr_SetString(PyExc_ValueError, "a plan digest has 16 bytes");
    SWIG_fail;
  }
  $1 = bytes;
}
%typemap(in) const shw_layout *const *layouts (void **list = NULL) {
  if (shw_py_handles($input, "shw_layout", &list) < 0) SWIG_fail;
  $1 = ($1_ltype)list;
}
%typemap(freearg, noblock=1) const shw_layout *const *layouts { PyMem_Free(list$argnum); }

/* Making a collective may wait for other ranks. */
%thread shw_context_open_collective;

/* They do not block, but they work for long. */
%thread shw_plan_describe;
%thread shw_plan_entries;
%thread shw_plan_match;
%thread shw_plan_digest;
%thread shw_content_digest;
%thread shw_global_plan_describe;
%thread shw_global_plan_representatives;
%thread shw_global_plan_create;
%thread shw_global_plan_write_list;
%thread shw_global_plan_rank_bytes;
%thread shw_global_plan_owners;
%thread shw_global_plan_json;
%thread shw_global_plan_digest;
%thread shw_global_plan_expand;

/* Hand-written natives; documented in native.h. Each takes and gives Python objects and raises by itself. */
PyObject *shw_py_set_error_hooks(PyObject *factory, PyObject *translator);
PyObject *shw_py_set_classifier(PyObject *classifier);
PyObject *shw_py_set_finalizing(void);
PyObject *shw_py_fork_begins(void);
PyObject *shw_py_fork_ends(void);
PyObject *shw_py_fork_ends_in_child(void);
PyObject *shw_py_leak(PyObject *object);
PyObject *shw_py_versions(void);
PyObject *shw_py_close(PyObject *handle);
PyObject *shw_py_context_create(PyObject *threads, PyObject *memory_budget, PyObject *log_level, PyObject *texts);
PyObject *shw_py_context_shutdown(PyObject *context, PyObject *timeout_ns);
PyObject *shw_py_log_drain(void);
PyObject *shw_py_log_set_level(PyObject *level);
PyObject *shw_py_job_wait(PyObject *job, PyObject *timeout_ns, PyObject *staged);
PyObject *shw_py_job_watch(PyObject *job);
PyObject *shw_py_job_ends_wait(void);
PyObject *shw_py_plan_bytes(PyObject *plan);
PyObject *shw_py_plan_items(PyObject *plan);
PyObject *shw_py_plan_merge(const shw_merge_options *options, PyObject *plans);
PyObject *shw_py_exchange_plans(PyObject *want_lists);
PyObject *shw_py_exchange_begin_round(PyObject *exchange);
PyObject *shw_py_plan_owners(PyObject *arrays, PyObject *rank_count);
PyObject *shw_py_layout_pieces(PyObject *layout, PyObject *shape, PyObject *rank);
PyObject *shw_py_state_pieces(PyObject *state, PyObject *index);
PyObject *shw_py_grid_place(const shw_grid_shard *shard, PyObject *places);
PyObject *shw_py_grid_pieces(const shw_grid_shard *shard);
PyObject *shw_py_grid_flat_entry(const shw_grid_shard *shard);
PyObject *shw_py_grid_flat_pieces(PyObject *shape, PyObject *entry, PyObject *chunk);
PyObject *shw_py_grid_overlap(PyObject *stored, PyObject *wanted, PyObject *index);
PyObject *shw_py_object_key(PyObject *key, PyObject *index, PyObject *shape);
PyObject *shw_py_object_key_parse(PyObject *name);
PyObject *shw_py_columns(PyObject *writable, PyObject *state);
PyObject *shw_py_columns_collect(PyObject *columns, PyObject *container, PyObject *name, PyObject *path, PyObject *parts);
PyObject *shw_py_columns_add(PyObject *columns, PyObject *name, PyObject *path, PyObject *leaf, PyObject *placement);
PyObject *shw_py_columns_add_flat(PyObject *columns, PyObject *arrays);
PyObject *shw_py_columns_pending(PyObject *columns);
PyObject *shw_py_columns_add_to_state(PyObject *columns, PyObject *state, PyObject *layouts, PyObject *rank);
PyObject *shw_py_state_object(PyObject *state, PyObject *index);
PyObject *shw_py_state_names(PyObject *state);
PyObject *shw_py_tensor_allocate(PyObject *tensor_type, PyObject *dtypes, PyObject *shapes);
PyObject *shw_py_tensor_view(PyObject *tensor_type, PyObject *tensor);
PyObject *shw_py_dlpack_of_copy(PyObject *tensor, PyObject *keywords);
PyObject *shw_py_checkpoint_tensors(PyObject *checkpoint, PyObject *first, PyObject *count);
PyObject *shw_py_checkpoint_chunks(PyObject *checkpoint, PyObject *first, PyObject *count);
PyObject *shw_py_checkpoint_read(PyObject *checkpoint, PyObject *index, PyObject *offsets, PyObject *sizes, PyObject *columns);
PyObject *shw_py_storage_create(PyObject *storage);
PyObject *shw_py_storage_read(PyObject *storage, PyObject *key, PyObject *offset, PyObject *size);
PyObject *shw_py_collective_create(PyObject *collective);
PyObject *shw_py_collective_create_node(PyObject *collective, PyObject *timeout_ns);
PyObject *shw_py_collective_call(PyObject *collective, PyObject *operation, PyObject *arguments);
PyObject *shw_py_work_wait(PyObject *work, PyObject *timeout_ns);
PyObject *shw_py_columns_declare(PyObject *columns, PyObject *name, PyObject *dtype, PyObject *shape);
PyObject *shw_py_hsdp_add_params(PyObject *unit, PyObject *columns, PyObject *rules);
PyObject *shw_py_hsdp_estimate(PyObject *units, PyObject *world, PyObject *options, PyObject *kind);
PyObject *shw_py_hsdp_add_grads(PyObject *unit, PyObject *indices, PyObject *columns, PyObject *take);
PyObject *shw_py_hsdp_box(PyObject *unit, PyObject *index);
PyObject *shw_py_hsdp_views(PyObject *unit, PyObject *view);
PyObject *shw_py_hsdp_view_device(PyObject *unit, PyObject *view, PyObject *index);
PyObject *shw_py_hsdp_view_dlpack(PyObject *unit, PyObject *view, PyObject *index, PyObject *versioned);
PyObject *shw_py_hsdp_set_memory(PyObject *unit, PyObject *first, PyObject *addresses, PyObject *sizes);
PyObject *shw_py_hsdp_set_prefetch(PyObject *unit, PyObject *key, PyObject *units);
PyObject *shw_py_communicator_issue(PyObject *communicator, PyObject *operation, PyObject *call, PyObject *buffers);

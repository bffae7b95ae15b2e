/* SPDX-License-Identifier: Apache-2.0
 *
 * Python typemaps. Handles are capsules that release themselves; a status other than OK raises through the factory of
 * errors.py; `out` becomes the result; byte inputs are pinned for the call; the GIL is held except where annotations.i
 * switches %thread on. The generated module is private: every public name is hand-written in bindings/python.
 *
 * What needs more than a typemap (options, tensors in bulk, waiting, callbacks) is C in bindings/python/native,
 * declared at the end of this file as functions of PyObject. */
%{
#include "bindings/python/native/native.h"
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
%ignore shw_layout_create;
%ignore shw_layout_box_count;
%ignore shw_layout_boxes;
%ignore shw_layout_local_offsets;
%ignore shw_layout_local_shape;
%rename("$ignore", regextarget=1) "^shw_grid_";
%ignore shw_state_add_tensors;
%ignore shw_state_add_dlpack;
%ignore shw_state_add_dlpack_legacy;
%ignore shw_state_add_objects;
%ignore shw_state_tensor;
%ignore shw_state_object_data;
%ignore shw_plan_data;
%ignore shw_plan_size;
%ignore shw_plan_item_at;
%ignore shw_plan_describe;
%ignore shw_plan_entries;
%ignore shw_plan_merge;
%ignore shw_plan_merge_buffers;
%ignore shw_plan_match;
%ignore shw_plan_owners;
%ignore shw_plan_digest;
%ignore shw_content_digest;
%ignore shw_global_plan_describe;
%ignore shw_global_plan_representatives;
%ignore shw_global_plan_create;
%ignore shw_global_plan_write_list;
%ignore shw_global_plan_rank_bytes;
%ignore shw_global_plan_owners;
%ignore shw_global_plan_json;
%ignore shw_global_plan_digest;
%ignore shw_global_plan_expand;
%ignore shw_report_summarize;
%ignore shw_job_progress;
%ignore shw_job_wait;
%ignore shw_job_wait_staged;
%ignore shw_job_error;
%ignore shw_job_on_done;
%ignore shw_cancellation_create;
%ignore shw_cancellation_cancel;
%ignore shw_cancellation_release;
%ignore shw_context_shutdown;
%ignore shw_context_create;
%ignore shw_checkpoint_tensor_infos;
%ignore shw_checkpoint_tensor_shape;
%ignore shw_checkpoint_chunk_infos;
%ignore shw_checkpoint_chunk_box;
%ignore shw_checkpoint_read_boxes;
%ignore shw_checkpoint_read_tensor;
%ignore shw_storage_create;
%ignore shw_storage_read;
%ignore shw_storage_stat_key;
%ignore shw_collective_create;
%ignore shw_collective_barrier;
%ignore shw_collective_broadcast;
%ignore shw_collective_all_gather;
%ignore shw_collective_all_gather_v;
%ignore shw_collective_gather_v;
%ignore shw_collective_scatter_v;
%ignore shw_collective_all_reduce_i64;
%rename("$ignore", regextarget=1) "^shw_(context|layout|state|save_planner|load_planner|plan|checkpoint|storage|collective|collective_group|job|report|job_description|global_plan)_release$";

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
SHW_PY_HANDLE(state)
SHW_PY_HANDLE(save_planner)
SHW_PY_HANDLE(load_planner)
SHW_PY_HANDLE(plan)
SHW_PY_HANDLE(checkpoint)
SHW_PY_HANDLE(storage)
SHW_PY_HANDLE(collective)
SHW_PY_HANDLE(collective_group)
SHW_PY_HANDLE(job)
SHW_PY_HANDLE(report)
SHW_PY_HANDLE(job_description)
SHW_PY_HANDLE(global_plan)

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
%typemap(in, numinputs=0, noblock=1) uint32_t *out (uint32_t number = 0) { $1 = &number; }
%typemap(argout, noblock=1) uint32_t *out {
  if (result == SHW_OK) {
    Py_XDECREF($result);
    $result = PyLong_FromUnsignedLong(*$1);
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
             (const char *prefix, uint64_t prefix_size), (const char *config, uint64_t config_size),
             (const char *message, uint64_t message_size) {
  if (shw_py_text($input, (const char **)&$1, &$2) < 0) SWIG_fail;
}
%typemap(in) const char *path, const char *root, const char *plugin, const char *name {
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
             (const void *results, const uint64_t *result_offsets, uint64_t result_count) (shw_py_blob blob = {0}) {
  if (shw_py_join($input, &blob) < 0) SWIG_fail;
  $1 = blob.data;
  $2 = blob.offsets;
  $3 = blob.count;
}
%typemap(freearg, noblock=1) (const void *plans, const uint64_t *plan_offsets, uint64_t plan_count),
             (const void *results, const uint64_t *result_offsets, uint64_t result_count) {
  shw_py_blob_free(&blob$argnum);
}
%typemap(in) (const uint64_t *indices, uint64_t count) (shw_py_blob blob = {0}) {
  if (shw_py_indices($input, &blob) < 0) SWIG_fail;
  $1 = blob.offsets;
  $2 = blob.count;
}
%typemap(freearg, noblock=1) (const uint64_t *indices, uint64_t count) { shw_py_blob_free(&blob$argnum); }

/* Options: tuples made by _options.py; None is NULL. */
%define SHW_PY_OPTIONS(NOUN)
%typemap(in) const shw_##NOUN##_options *options (shw_py_##NOUN##_options filled) {
  if (shw_py_##NOUN##_options_read($input, &filled, (const shw_##NOUN##_options **)&$1) < 0) SWIG_fail;
}
%enddef
SHW_PY_OPTIONS(save)
SHW_PY_OPTIONS(load)
SHW_PY_OPTIONS(checkpoint)
SHW_PY_OPTIONS(estimate)

/* Hand-written natives; documented in native.h. Each takes and gives Python objects and raises by itself. */
PyObject *shw_py_set_error_hooks(PyObject *factory, PyObject *translator);
PyObject *shw_py_set_classifier(PyObject *classifier);
PyObject *shw_py_set_finalizing(void);
PyObject *shw_py_leak(PyObject *object);
PyObject *shw_py_versions(void);
PyObject *shw_py_close(PyObject *handle);
PyObject *shw_py_context_create(PyObject *threads, PyObject *memory_budget, PyObject *log_level, PyObject *plugin_path);
PyObject *shw_py_context_shutdown(PyObject *context, PyObject *timeout_ns);
PyObject *shw_py_log_drain(void);
PyObject *shw_py_job_wait(PyObject *job, PyObject *timeout_ns, PyObject *staged);
PyObject *shw_py_job_progress(PyObject *job);
PyObject *shw_py_job_watch(PyObject *job);
PyObject *shw_py_job_ends_wait(void);
PyObject *shw_py_report_summary(PyObject *report);
PyObject *shw_py_plan_bytes(PyObject *plan);
PyObject *shw_py_plan_items(PyObject *plan);
PyObject *shw_py_plan_describe(PyObject *options, PyObject *entries);
PyObject *shw_py_plan_entries(PyObject *plan);
PyObject *shw_py_plan_merge(PyObject *options, PyObject *plans);
PyObject *shw_py_plan_match(PyObject *options, PyObject *stored, PyObject *wanted);
PyObject *shw_py_plan_owners(PyObject *arrays, PyObject *rank_count);
PyObject *shw_py_plan_digest(PyObject *plan);
PyObject *shw_py_content_digest(PyObject *data);
PyObject *shw_py_global_plan_describe(PyObject *options, PyObject *entries, PyObject *layouts);
PyObject *shw_py_global_plan_representatives(PyObject *digests);
PyObject *shw_py_global_plan(PyObject *options, PyObject *digests, PyObject *descriptions, PyObject *parts);
PyObject *shw_py_global_plan_write_list(PyObject *plan, PyObject *arguments);
PyObject *shw_py_global_plan_owners(PyObject *plan, PyObject *name);
PyObject *shw_py_global_plan_rank_bytes(PyObject *plan);
PyObject *shw_py_global_plan_json(PyObject *plan);
PyObject *shw_py_global_plan_digest(PyObject *plan);
PyObject *shw_py_global_plan_expand(PyObject *plan, const char *generation);
PyObject *shw_py_layout_create(PyObject *specification);
PyObject *shw_py_layout_pieces(PyObject *layout, PyObject *shape, PyObject *rank);
PyObject *shw_py_layout_local_shape(PyObject *layout, PyObject *shape, PyObject *rank);
PyObject *shw_py_grid_place(PyObject *local_shape, PyObject *prepended, PyObject *places);
PyObject *shw_py_grid_pieces(PyObject *shard);
PyObject *shw_py_grid_flat_entry(PyObject *shard);
PyObject *shw_py_grid_flat_pieces(PyObject *shape, PyObject *entry, PyObject *chunk);
PyObject *shw_py_grid_overlap(PyObject *stored, PyObject *wanted, PyObject *index);
PyObject *shw_py_columns(PyObject *writable, PyObject *state);
PyObject *shw_py_columns_collect(PyObject *columns, PyObject *container, PyObject *name, PyObject *path);
PyObject *shw_py_columns_add(PyObject *columns, PyObject *name, PyObject *path, PyObject *leaf, PyObject *placement);
PyObject *shw_py_columns_add_flat(PyObject *columns, PyObject *arrays);
PyObject *shw_py_columns_pending(PyObject *columns);
PyObject *shw_py_columns_add_to_state(PyObject *columns, PyObject *state, PyObject *layouts, PyObject *rank);
PyObject *shw_py_items_configure(PyObject *classes);
PyObject *shw_py_items_encode(PyObject *items);
PyObject *shw_py_items_collect(PyObject *dict, PyObject *items_of, PyObject *may_be_pinned);
PyObject *shw_py_items_decode(PyObject *plan, PyObject *kept);
PyObject *shw_py_items_stored(PyObject *plan);
PyObject *shw_py_items_keep(PyObject *items, PyObject *kept);
PyObject *shw_py_reads_plan(PyObject *rows);
PyObject *shw_py_reads_prove(PyObject *rows);
PyObject *shw_py_reads_encode(PyObject *items);
PyObject *shw_py_reads_decode(PyObject *reads);
PyObject *shw_py_state_add_objects(PyObject *state, PyObject *batch);
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
PyObject *shw_py_storage_stat(PyObject *storage, PyObject *key);
PyObject *shw_py_collective_create(PyObject *collective);
PyObject *shw_py_collective_call(PyObject *collective, PyObject *operation, PyObject *arguments);

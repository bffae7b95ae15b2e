/* SPDX-License-Identifier: Apache-2.0
 *
 * Units of HSDP: parameters and gradients of any kind of tensor that the module knows, views of the
 * library's memory, and memory that the host gives. What is borrowed is kept alive by the Python
 * layer. */
#include "bindings/python/native/hsdp_params.h"

#include <string.h>

/* ---- parameters ---- */

/* Appends a parameter without data to columns. */
PyObject* shw_py_columns_declare(PyObject* object, PyObject* name, PyObject* dtype,
                                 PyObject* shape) {
  columns* self = columns_of(object);
  int64_t extents[SHW_PY_RANK_MAX];
  const char* text = NULL;
  uint64_t size = 0;
  const Py_ssize_t ndim = shw_py_int64s(shape, extents, SHW_PY_RANK_MAX);
  const long number = PyLong_AsLong(dtype);
  if (!self || ndim < 0 || PyErr_Occurred() || shw_py_text(name, &text, &size) < 0) return NULL;
  shw_tensor tensor;
  shw_tensor_init(&tensor, sizeof tensor);
  tensor.dtype = (int32_t)number;
  tensor.ndim = (int32_t)ndim;
  tensor.shape = extents;
  if (columns_add_tensor(self, &tensor) < 0 || vector_append(&self->names, text, size) < 0)
    return NULL;
  const uint64_t end = self->names.size;
  if (vector_append(&self->name_offsets, &end, sizeof end) < 0) return NULL;
  Py_RETURN_NONE;
}

int shw_py_params_read(PyObject* object, PyObject* rules, shw_py_params* into) {
  columns* self = columns_of(object);
  PyObject *dims, *flags, *aliases, *ranges;
  if (!self || !PyArg_ParseTuple(rules, "OOOO", &dims, &flags, &aliases, &ranges) ||
      PyObject_GetBuffer(dims, &into->dims, PyBUF_SIMPLE) < 0 ||
      PyObject_GetBuffer(flags, &into->flags, PyBUF_SIMPLE) < 0 ||
      shw_py_join(aliases, &into->aliases) < 0 || shw_py_indices(ranges, &into->ranges) < 0)
    return -1;
  columns_seal(self);
  shw_hsdp_param_batch* batch = &into->batch;
  shw_hsdp_param_batch_init(batch, sizeof *batch);
  batch->count = self->count;
  batch->names = self->names.data;
  batch->name_offsets = (const uint64_t*)self->name_offsets.data;
  batch->tensors = (const shw_tensor*)self->tensors.data;
  batch->shard_dims = into->dims.buf;
  batch->param_flags = into->flags.buf;
  batch->aliases = into->aliases.data;
  batch->alias_offsets = into->aliases.offsets;
  batch->alias_ranges = into->ranges.offsets;
  return 0;
}

void shw_py_params_free(shw_py_params* params) {
  shw_py_blob_free(&params->aliases);
  shw_py_blob_free(&params->ranges);
  PyBuffer_Release(&params->flags);
  PyBuffer_Release(&params->dims);
}

PyObject* shw_py_hsdp_add_params(PyObject* capsule, PyObject* object, PyObject* rules) {
  void* unit = NULL;
  if (shw_py_handle(capsule, "shw_hsdp_unit", &unit) < 0) return NULL;
  shw_py_params params = {0};
  PyObject* result = NULL;
  if (shw_py_params_read(object, rules, &params) == 0) {
    shw_error* error = NULL;
    const shw_status status = shw_hsdp_unit_add_params(unit, &params.batch, &error);
    if (status == SHW_OK) {
      result = Py_NewRef(Py_None);
    } else {
      shw_py_raise(status, error);
    }
  }
  shw_py_params_free(&params);
  return result;
}

/* ---- gradients ---- */

static PyObject* hand_in(void* unit, const uint64_t* params, const shw_tensor* grads,
                         uint64_t count, int take) {
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status = shw_hsdp_unit_add_grads(
      unit, params, grads, count, take ? SHW_HSDP_TAKE : SHW_HSDP_ADD, &error);
  Py_END_ALLOW_THREADS if (status == SHW_OK) Py_RETURN_NONE;
  shw_py_raise(status, error);
  return NULL;
}

PyObject* shw_py_hsdp_add_grads(PyObject* capsule, PyObject* indices, PyObject* object,
                                PyObject* take) {
  columns* self = columns_of(object);
  void* unit = NULL;
  shw_py_blob blob = {0};
  const int taken = PyObject_IsTrue(take);
  if (!self || taken < 0 || shw_py_handle(capsule, "shw_hsdp_unit", &unit) < 0 ||
      shw_py_indices(indices, &blob) < 0)
    return NULL;
  PyObject* result = NULL;
  if (blob.count != self->count) {
    PyErr_SetString(PyExc_ValueError, "as many gradients as parameters are needed");
  } else {
    columns_seal(self);
    result = hand_in(unit, blob.offsets, (const shw_tensor*)self->tensors.data, self->count, taken);
  }
  shw_py_blob_free(&blob);
  return result;
}

/* ---- views ---- */

static PyObject* view_row(const shw_tensor* view) {
  PyObject* shape = shw_py_int_tuple(view->shape, view->ndim);
  if (!shape) return NULL;
  return Py_BuildValue("(KNiK)", (unsigned long long)(uintptr_t)view->data, shape, (int)view->dtype,
                       (unsigned long long)view->byte_size);
}

PyObject* shw_py_hsdp_box(PyObject* capsule, PyObject* index) {
  void* unit = NULL;
  const unsigned long long number = PyLong_AsUnsignedLongLong(index);
  if (PyErr_Occurred() || shw_py_handle(capsule, "shw_hsdp_unit", &unit) < 0) return NULL;
  shw_hsdp_box box;
  shw_hsdp_box_init(&box, sizeof box);
  shw_error* error = NULL;
  const shw_status status = shw_hsdp_unit_box(unit, number, &box, &error);
  if (status != SHW_OK) {
    shw_py_raise(status, error);
    return NULL;
  }
  PyObject* offsets = shw_py_int_tuple(box.offsets, box.ndim);
  PyObject* sizes = offsets ? shw_py_int_tuple(box.sizes, box.ndim) : NULL;
  PyObject* shape = sizes ? shw_py_int_tuple(box.global_shape, box.ndim) : NULL;
  PyObject* result = shape ? PyTuple_Pack(3, offsets, sizes, shape) : NULL;
  Py_XDECREF(offsets);
  Py_XDECREF(sizes);
  Py_XDECREF(shape);
  return result;
}

/* A list of (address, shape, dtype, bytes) for all parameters; address 0 = no gradient. */
PyObject* shw_py_hsdp_views(PyObject* capsule, PyObject* view) {
  void* unit = NULL;
  const long which = PyLong_AsLong(view);
  if (PyErr_Occurred() || shw_py_handle(capsule, "shw_hsdp_unit", &unit) < 0) return NULL;
  const uint64_t count = shw_hsdp_unit_param_count(unit);
  shw_tensor* views = PyMem_Calloc((size_t)count + 1, sizeof *views);
  if (!views) return PyErr_NoMemory();
  for (uint64_t i = 0; i < count; ++i) shw_tensor_init(&views[i], sizeof views[i]);
  shw_error* error = NULL;
  const shw_status status = shw_hsdp_unit_views(unit, (int32_t)which, 0, count, views, &error);
  PyObject* list = status == SHW_OK ? PyList_New((Py_ssize_t)count) : NULL;
  for (uint64_t i = 0; list && i < count; ++i) {
    PyObject* row = view_row(&views[i]);
    if (!row || PyList_SetItem(list, (Py_ssize_t)i, row) < 0) Py_CLEAR(list);
  }
  PyMem_Free(views);
  if (status != SHW_OK) shw_py_raise(status, error);
  return list;
}

/* Where one view lies, by the numbers of DLPack: (type, id). */
PyObject* shw_py_hsdp_view_device(PyObject* capsule, PyObject* view, PyObject* index) {
  void* unit = NULL;
  const long which = PyLong_AsLong(view);
  const unsigned long long number = PyLong_AsUnsignedLongLong(index);
  if (PyErr_Occurred() || shw_py_handle(capsule, "shw_hsdp_unit", &unit) < 0) return NULL;
  shw_tensor found = SHW_TENSOR_INIT;
  shw_error* error = NULL;
  const shw_status status = shw_hsdp_unit_views(unit, (int32_t)which, number, 1, &found, &error);
  if (status == SHW_OK) return Py_BuildValue("(ii)", (int)found.device_type, (int)found.device_id);
  shw_py_raise(status, error);
  return NULL;
}

static void destroy_legacy(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return; /* a consumer has it */
  shw_dl_managed* managed = PyCapsule_GetPointer(capsule, "dltensor");
  managed->deleter(managed);
}

static void destroy_versioned(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) return;
  shw_dl_managed_versioned* managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
  managed->deleter(managed);
}

/* A DLPack capsule of one view, which keeps the context alive. */
PyObject* shw_py_hsdp_view_dlpack(PyObject* capsule, PyObject* view, PyObject* index,
                                  PyObject* versioned) {
  void* unit = NULL;
  const long which = PyLong_AsLong(view);
  const unsigned long long number = PyLong_AsUnsignedLongLong(index);
  const int is_versioned = PyObject_IsTrue(versioned);
  if (PyErr_Occurred() || shw_py_handle(capsule, "shw_hsdp_unit", &unit) < 0) return NULL;
  shw_error* error = NULL;
  struct DLManagedTensorVersioned* managed = NULL;
  struct DLManagedTensor* legacy = NULL;
  const shw_status status =
      is_versioned
          ? shw_hsdp_unit_view_dlpack(unit, (int32_t)which, number, &managed, &error)
          : shw_hsdp_unit_view_dlpack_legacy(unit, (int32_t)which, number, &legacy, &error);
  if (status != SHW_OK) {
    shw_py_raise(status, error);
    return NULL;
  }
  PyObject* made = is_versioned ? PyCapsule_New(managed, "dltensor_versioned", destroy_versioned)
                                : PyCapsule_New(legacy, "dltensor", destroy_legacy);
  if (!made && managed) managed->deleter(managed);
  if (!made && legacy) legacy->deleter(legacy);
  return made;
}

/* ---- memory that the host gives ---- */

PyObject* shw_py_hsdp_set_memory(PyObject* capsule, PyObject* first, PyObject* addresses,
                                 PyObject* sizes) {
  void* unit = NULL;
  shw_py_blob places = {0}, bytes = {0};
  const unsigned long long begin = PyLong_AsUnsignedLongLong(first);
  if (PyErr_Occurred() || shw_py_handle(capsule, "shw_hsdp_unit", &unit) < 0) return NULL;
  PyObject* result = NULL;
  if (shw_py_indices(addresses, &places) == 0 && shw_py_indices(sizes, &bytes) == 0) {
    if (places.count != bytes.count) {
      PyErr_SetString(PyExc_ValueError, "as many sizes as addresses are needed");
    } else {
      shw_error* error = NULL;
      const shw_status status = shw_hsdp_unit_set_memory(
          unit, begin, places.count, (void* const*)(void*)places.offsets, bytes.offsets, &error);
      if (status == SHW_OK) {
        result = Py_NewRef(Py_None);
      } else {
        shw_py_raise(status, error);
      }
    }
  }
  shw_py_blob_free(&places);
  shw_py_blob_free(&bytes);
  return result;
}

PyObject* shw_py_hsdp_set_prefetch(PyObject* capsule, PyObject* key, PyObject* units) {
  void* unit = NULL;
  void** list = NULL;
  const long which = PyLong_AsLong(key);
  if (PyErr_Occurred() || shw_py_handle(capsule, "shw_hsdp_unit", &unit) < 0) return NULL;
  if (shw_py_handles(units, "shw_hsdp_unit", &list) < 0) {
    PyMem_Free(list);
    return NULL;
  }
  shw_error* error = NULL;
  const shw_status status = shw_hsdp_unit_set_units(
      unit, (int32_t)which, (shw_hsdp_unit* const*)list, (uint64_t)PyList_Size(units), &error);
  PyMem_Free(list);
  if (status == SHW_OK) Py_RETURN_NONE;
  shw_py_raise(status, error);
  return NULL;
}

/* ---- operations of communicators ---- */

/* The work of one operation. call: (sequence, unit, count, dtype, op, scale, timeout, tag); the
 * Python layer keeps the buffers alive until it has ended. */
PyObject* shw_py_communicator_issue(PyObject* capsule, PyObject* operation, PyObject* call,
                                    PyObject* buffers) {
  void* communicator = NULL;
  const char* name = NULL;
  uint64_t name_size = 0;
  PyObject *in_object, *out_object;
  int root = 0;
  unsigned long long sequence, unit, count;
  long long timeout_ns;
  int dtype, op;
  unsigned tag;
  double scale;
  if (shw_py_handle(capsule, "shw_communicator", &communicator) < 0 ||
      shw_py_text(operation, &name, &name_size) < 0 ||
      !PyArg_ParseTuple(call, "KKKiidLI", &sequence, &unit, &count, &dtype, &op, &scale,
                        &timeout_ns, &tag) ||
      !PyArg_ParseTuple(buffers, "OOi", &in_object, &out_object, &root))
    return NULL;
  shw_communicator_call made;
  shw_communicator_call_init(&made, sizeof made);
  made.sequence = sequence;
  made.unit_id = unit;
  made.count = count;
  made.dtype = dtype;
  made.op = op;
  made.scale = scale;
  made.timeout_ns = timeout_ns;
  made.tag = tag;
  Py_buffer in = {0}, out = {0};
  if (in_object != Py_None && PyObject_GetBuffer(in_object, &in, PyBUF_SIMPLE) < 0) return NULL;
  if (out_object != Py_None && PyObject_GetBuffer(out_object, &out, PyBUF_WRITABLE) < 0) {
    PyBuffer_Release(&in);
    return NULL;
  }
  shw_work* work = NULL;
  shw_error* error = NULL;
  shw_status status = SHW_INVALID_ARGUMENT;
  const uint64_t in_size = (uint64_t)in.len, out_size = (uint64_t)out.len;
  Py_BEGIN_ALLOW_THREADS if (strcmp(name, "all_gather") == 0) {
    status = shw_communicator_all_gather(communicator, &made, in.buf, in_size, out.buf, out_size,
                                         &work, &error);
  }
  else if (strcmp(name, "all_to_all") == 0) {
    status = shw_communicator_all_to_all(communicator, &made, in.buf, in_size, out.buf, out_size,
                                         &work, &error);
  }
  else if (strcmp(name, "reduce_scatter") == 0) {
    status = shw_communicator_reduce_scatter(communicator, &made, in.buf, in_size, out.buf,
                                             out_size, &work, &error);
  }
  else if (strcmp(name, "all_reduce") == 0) {
    status = shw_communicator_all_reduce(communicator, &made, out.buf, out_size, &work, &error);
  }
  else if (strcmp(name, "broadcast") == 0) {
    status =
        shw_communicator_broadcast(communicator, &made, out.buf, out_size, root, &work, &error);
  }
  else {
    status = shw_communicator_barrier(communicator, &made, &work, &error);
  }
  Py_END_ALLOW_THREADS PyBuffer_Release(&in);
  PyBuffer_Release(&out);
  if (status == SHW_OK) return shw_py_own_work(work);
  shw_py_raise(status, error);
  return NULL;
}

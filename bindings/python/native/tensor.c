/* SPDX-License-Identifier: Apache-2.0
 *
 * TensorBase: a dense row-major host tensor in memory of the library, the base of
 * shardwright.Tensor. It exports the buffer protocol where its dtype has a format, and DLPack. The
 * bytes live in counted blocks: small tensors share one, and an exported DLPack tensor keeps its
 * block alive without any lock of Python. Shape and dtype never change. */
#include "bindings/python/native/dlpack_abi.h"
#include "bindings/python/native/native.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_BYTES 65536
#define SLAB_BYTES 1048576
#define ALIGNMENT 64
#define RANK_MAX 64

typedef struct {
  atomic_int references;
  shw_owned_tensor* owned;
  char* data;
} memory_block;

typedef struct {
  PyObject_HEAD memory_block* block;
  char* data;
  uint64_t byte_size;
  int32_t dtype, ndim;
  int64_t* extents; /* shape, then strides in elements, then strides in bytes */
} tensor_object;

static PyTypeObject* tensor_base;

/* ---- memory ---- */

static memory_block* block_create(uint64_t size) {
  memory_block* block = malloc(sizeof *block);
  if (!block) {
    PyErr_NoMemory();
    return NULL;
  }
  atomic_init(&block->references, 1);
  const int64_t extent = (int64_t)size;
  shw_error* error = NULL;
  shw_tensor view;
  shw_tensor_init(&view, sizeof view);
  shw_status status = shw_owned_tensor_create(SHW_UINT8, &extent, 1, &block->owned, &error);
  if (status == SHW_OK) {
    status = shw_owned_tensor_describe(block->owned, &view, &error);
    if (status != SHW_OK) shw_owned_tensor_release(block->owned);
  }
  if (status != SHW_OK) {
    free(block);
    shw_py_raise(status, error);
    return NULL;
  }
  block->data = view.data;
  return block;
}

static void block_release(memory_block* block) {
  if (!block || atomic_fetch_sub(&block->references, 1) != 1) return;
  shw_owned_tensor_release(block->owned);
  free(block);
}

/* New tensor over bytes of `block`, which gains a reference. */
static PyObject* tensor_create(PyTypeObject* type, memory_block* block, char* data, int32_t dtype,
                               int32_t ndim, const int64_t* shape) {
  tensor_object* self = (tensor_object*)PyType_GenericAlloc(type, 0);
  if (!self) return NULL;
  self->extents = malloc((3 * (size_t)ndim + 1) * sizeof *self->extents);
  if (!self->extents) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  const int64_t bits = shw_dtype_bits(dtype);
  self->dtype = dtype;
  self->ndim = ndim;
  int64_t count = 1;
  for (int32_t i = ndim - 1; i >= 0; --i) {
    self->extents[i] = shape[i];
    self->extents[ndim + i] = count;
    self->extents[2 * ndim + i] = count * bits / 8;
    count *= shape[i];
  }
  self->byte_size = shw_dtype_byte_size(dtype, (uint64_t)count);
  self->data = data;
  self->block = block;
  atomic_fetch_add(&block->references, 1);
  return (PyObject*)self;
}

static void tensor_dealloc(PyObject* object) {
  tensor_object* self = (tensor_object*)object;
  PyTypeObject* type = Py_TYPE(object);
  block_release(self->block);
  free(self->extents);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(object);
  Py_DECREF(type);
}

/* ---- buffer protocol ---- */

/* struct-module format of a dtype, NULL where there is none. */
static const char* format_of(int32_t dtype) {
  static const char* const formats[] = {
      [SHW_BOOL] = "?",       [SHW_INT8] = "b",        [SHW_INT16] = "h",   [SHW_INT32] = "i",
      [SHW_INT64] = "q",      [SHW_UINT8] = "B",       [SHW_UINT16] = "H",  [SHW_UINT32] = "I",
      [SHW_UINT64] = "Q",     [SHW_FLOAT16] = "e",     [SHW_FLOAT32] = "f", [SHW_FLOAT64] = "d",
      [SHW_COMPLEX64] = "Zf", [SHW_COMPLEX128] = "Zd",
  };
  return (size_t)dtype < sizeof formats / sizeof formats[0] ? formats[dtype] : NULL;
}

static int tensor_getbuffer(PyObject* object, Py_buffer* view, int flags) {
  tensor_object* self = (tensor_object*)object;
  const char* format = format_of(self->dtype);
  view->obj = NULL;
  if (!format) {
    PyErr_Format(PyExc_BufferError, "dtype %s has no buffer format; use raw() or __dlpack__",
                 shw_dtype_name(self->dtype));
    return -1;
  }
  view->buf = self->data;
  view->obj = object;
  Py_INCREF(object);
  view->len = (Py_ssize_t)self->byte_size;
  view->readonly = 0;
  view->itemsize = (Py_ssize_t)shw_dtype_byte_size(self->dtype, 1);
  view->format = flags & PyBUF_FORMAT ? (char*)format : NULL;
  view->ndim = self->ndim;
  view->shape = flags & PyBUF_ND ? (Py_ssize_t*)self->extents : NULL;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES
                      ? (Py_ssize_t*)(self->extents + 2 * self->ndim)
                      : NULL;
  view->suboffsets = NULL;
  view->internal = NULL;
  return 0;
}

/* ---- DLPack ---- */

typedef struct {
  union {
    shw_dl_managed_versioned versioned;
    shw_dl_managed legacy;
  } managed;
  memory_block* block;
  int64_t extents[2 * RANK_MAX];
} exported;

static void exported_free(void* manager) {
  exported* e = manager;
  block_release(e->block);
  free(e);
}
static void delete_versioned(shw_dl_managed_versioned* self) {
  exported_free(self->manager);
}
static void delete_legacy(shw_dl_managed* self) {
  exported_free(self->manager);
}

static void destroy_capsule(PyObject* capsule) {
  const char* name = PyCapsule_GetName(capsule);
  if (!name || strncmp(name, "dltensor", 8) != 0) return;
  void* pointer = PyCapsule_GetPointer(capsule, name);
  if (!pointer)
    PyErr_Clear();
  else if (strcmp(name, "dltensor") == 0)
    delete_legacy(pointer);
  else
    delete_versioned(pointer);
}

static void describe_dl(const tensor_object* self, shw_dl_tensor* out, int64_t* extents) {
  memcpy(extents, self->extents, 2 * (size_t)self->ndim * sizeof *extents);
  *out = (shw_dl_tensor){.data = self->data,
                         .device_type = SHW_DEVICE_CPU,
                         .ndim = self->ndim,
                         .type = shw_dtype_to_dlpack(self->dtype),
                         .shape = extents,
                         .strides = extents + self->ndim};
}

static PyObject* tensor_dlpack(PyObject* object, PyObject* arguments, PyObject* keywords) {
  static char* names[] = {"stream", "max_version", "dl_device", "copy", NULL};
  tensor_object* self = (tensor_object*)object;
  PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OOOO", names, &stream, &max_version,
                                   &device, &copy)) {
    return NULL;
  }
  if (copy == Py_True) {
    PyErr_SetString(PyExc_BufferError,
                    "a copy is not made here; copy the tensor after the exchange");
    return NULL;
  }
  int type = SHW_DEVICE_CPU, id = 0, major = 0, minor = 0;
  if (device != Py_None && !PyArg_ParseTuple(device, "ii", &type, &id)) return NULL;
  if (type != SHW_DEVICE_CPU) {
    PyErr_SetString(PyExc_BufferError,
                    "the tensor is in host memory and cannot be exported to another device");
    return NULL;
  }
  if (max_version != Py_None && !PyArg_ParseTuple(max_version, "ii", &major, &minor)) return NULL;
  exported* e = calloc(1, sizeof *e);
  if (!e) return PyErr_NoMemory();
  e->block = self->block;
  atomic_fetch_add(&e->block->references, 1);
  PyObject* capsule;
  if (major >= SHW_DL_MAJOR) {
    shw_dl_managed_versioned* m = &e->managed.versioned;
    m->major = SHW_DL_MAJOR;
    m->minor = SHW_DL_MINOR;
    m->manager = e;
    m->deleter = delete_versioned;
    describe_dl(self, &m->tensor, e->extents);
    capsule = PyCapsule_New(m, "dltensor_versioned", destroy_capsule);
  } else {
    e->managed.legacy.manager = e;
    e->managed.legacy.deleter = delete_legacy;
    describe_dl(self, &e->managed.legacy.tensor, e->extents);
    capsule = PyCapsule_New(&e->managed.legacy, "dltensor", destroy_capsule);
  }
  if (!capsule) exported_free(e);
  return capsule;
}

static PyObject* tensor_dlpack_device(PyObject* object, PyObject* ignored) {
  (void)object;
  (void)ignored;
  return Py_BuildValue("(ii)", SHW_DEVICE_CPU, 0);
}

/* ---- attributes ---- */

static PyObject* get_shape(PyObject* object, void* closure) {
  (void)closure;
  return shw_py_int_tuple(((tensor_object*)object)->extents, ((tensor_object*)object)->ndim);
}
static PyObject* get_dtype(PyObject* object, void* closure) {
  (void)closure;
  return PyUnicode_FromString(shw_dtype_name(((tensor_object*)object)->dtype));
}
static PyObject* get_nbytes(PyObject* object, void* closure) {
  (void)closure;
  return PyLong_FromUnsignedLongLong(((tensor_object*)object)->byte_size);
}

static PyMethodDef tensor_methods[] = {{"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack,
                                        METH_VARARGS | METH_KEYWORDS, "DLPack capsule."},
                                       {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS,
                                        "Device of the bytes: (1, 0), the host."},
                                       {NULL, NULL, 0, NULL}};
static PyGetSetDef tensor_attributes[] = {
    {"shape", get_shape, NULL, "Extents, row-major.", NULL},
    {"dtype", get_dtype, NULL, "Name of the dtype.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements, packed.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

/* ---- made by the module ---- */

static int class_of(PyObject* type, PyTypeObject** out) {
  *out = (PyTypeObject*)type;
  if (PyType_Check(type) && PyType_IsSubtype(*out, tensor_base)) return 0;
  PyErr_SetString(PyExc_TypeError, "expected a class derived from TensorBase");
  return -1;
}

/* One tensor per dtype number and shape; small ones share blocks. */
PyObject* shw_py_tensor_allocate(PyObject* tensor_type, PyObject* dtypes, PyObject* shapes) {
  PyTypeObject* type;
  if (class_of(tensor_type, &type) < 0) return NULL;
  const Py_ssize_t count = PyList_Size(dtypes);
  if (count < 0 || PyList_Size(shapes) != count) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "dtypes and shapes differ in length");
    return NULL;
  }
  PyObject* list = PyList_New(count);
  memory_block* slab = NULL;
  uint64_t used = SLAB_BYTES;
  for (Py_ssize_t i = 0; list && i < count; ++i) {
    int64_t shape[RANK_MAX];
    const int32_t dtype = (int32_t)PyLong_AsLong(PyList_GetItem(dtypes, i));
    const Py_ssize_t ndim =
        PyErr_Occurred() ? -1 : shw_py_int64s(PyList_GetItem(shapes, i), shape, RANK_MAX);
    uint64_t elements = 1;
    for (Py_ssize_t d = 0; d < ndim; ++d) elements *= (uint64_t)shape[d];
    const uint64_t size = ndim < 0 ? 0 : shw_dtype_byte_size(dtype, elements);
    memory_block* block = NULL;
    char* data = NULL;
    PyObject* tensor = NULL;
    if (ndim >= 0 && size > SMALL_BYTES) {
      block = block_create(size);
      if (block) data = block->data;
    } else if (ndim >= 0) {
      if (!slab || used + size > SLAB_BYTES) {
        block_release(slab);
        slab = block_create(i + 1 == count ? (size ? size : 1) : SLAB_BYTES);
        used = 0;
      }
      if (slab) {
        block = slab;
        atomic_fetch_add(&block->references, 1);
        data = slab->data + used;
        used += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
      }
    }
    if (block) tensor = tensor_create(type, block, data, dtype, (int32_t)ndim, shape);
    block_release(block);
    if (!tensor || PyList_SetItem(list, i, tensor) < 0) Py_CLEAR(list);
  }
  block_release(slab);
  return list;
}

/* The same bytes as a one-dimensional uint8 tensor. */
PyObject* shw_py_tensor_view(PyObject* tensor_type, PyObject* object) {
  PyTypeObject* type;
  if (class_of(tensor_type, &type) < 0) return NULL;
  if (!PyObject_TypeCheck(object, tensor_base)) {
    PyErr_SetString(PyExc_TypeError, "expected a tensor of this module");
    return NULL;
  }
  tensor_object* self = (tensor_object*)object;
  const int64_t extent = (int64_t)self->byte_size;
  return tensor_create(type, self->block, self->data, SHW_UINT8, 1, &extent);
}

/* Consumers that ask for no version get a capsule without flags. */
PyObject* shw_py_dlpack_of_copy(PyObject* object, PyObject* keywords) {
  if (!PyObject_TypeCheck(object, tensor_base)) {
    PyErr_SetString(PyExc_TypeError, "expected a tensor of this module");
    return NULL;
  }
  PyObject* none = PyTuple_New(0);
  PyObject* capsule = none ? tensor_dlpack(object, none, keywords) : NULL;
  Py_XDECREF(none);
  if (capsule && PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    shw_dl_managed_versioned* managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    managed->flags |= SHW_DL_IS_COPIED;
  }
  return capsule;
}

int shw_py_tensor_describe(PyObject* object, shw_tensor* out) {
  if (!tensor_base || !PyObject_TypeCheck(object, tensor_base)) return 0;
  const tensor_object* self = (const tensor_object*)object;
  out->data = self->data;
  out->byte_size = self->byte_size;
  out->device_type = SHW_DEVICE_CPU;
  out->dtype = self->dtype;
  out->ndim = self->ndim;
  out->shape = self->extents;
  return 1;
}

static PyType_Slot tensor_slots[] = {{Py_tp_dealloc, (void*)tensor_dealloc},
                                     {Py_tp_methods, tensor_methods},
                                     {Py_tp_getset, tensor_attributes},
                                     {Py_bf_getbuffer, (void*)tensor_getbuffer},
                                     {Py_tp_doc, "Dense host tensor in memory of the library."},
                                     {0, NULL}};
static PyType_Spec tensor_spec = {
    "shardwright._native._shw_native.TensorBase", sizeof(tensor_object), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, tensor_slots};

int shw_py_init_types(PyObject* module) {
  tensor_base = (PyTypeObject*)PyType_FromSpec(&tensor_spec);
  if (!tensor_base || PyModule_AddObjectRef(module, "TensorBase", (PyObject*)tensor_base) < 0)
    return -1;
  if (shw_py_init_columns(module) < 0 || shw_py_init_buffers(module) < 0 ||
      shw_py_init_exchange(module) < 0)
    return -1;
  return shw_py_init_hosts(module);
}

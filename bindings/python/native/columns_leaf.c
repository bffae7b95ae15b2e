/* SPDX-License-Identifier: Apache-2.0
 *
 * One leaf of a state as a tensor descriptor: by the C exchange table of its type, by the buffer
 * protocol, as a tensor of this module, or as a DLPack capsule. Pointers only, no bytes are copied;
 * what keeps the memory alive is held by the columns. GIL held. */
#include "bindings/python/native/columns.h"

#include <string.h>

#define CACHED_TYPES 64
#define RANK_MAX 64

static PyObject* leaf_classifier; /* value -> kind, asked once per type */
static struct {
  PyObject* type;
  leaf_type found;
} cache[CACHED_TYPES];
static size_t cache_size, cache_next;

PyObject* shw_py_set_classifier(PyObject* classifier) {
  Py_INCREF(classifier);
  Py_XDECREF(leaf_classifier);
  leaf_classifier = classifier;
  Py_RETURN_NONE;
}

/* Method of a type, found once: a lookup per tensor would cost as much as the call. NULL when there
 * is none. */
static PyObject* method_of(PyObject* type, const char* name) {
  PyObject* method = shw_py_attribute(type, name);
  if (!method) PyErr_Clear();
  return method;
}

/* Takes over the methods; the type that came first leaves when there is no room. */
static const leaf_type* remember(PyObject* type, const leaf_type* found) {
  const size_t at = cache_next++ % CACHED_TYPES;
  if (at < cache_size) {
    Py_DECREF(cache[at].type);
    Py_XDECREF(cache[at].found.is_conj);
    Py_XDECREF(cache[at].found.is_neg);
  } else {
    ++cache_size;
  }
  Py_INCREF(type);
  cache[at].type = type;
  cache[at].found = *found;
  return &cache[at].found;
}

const leaf_type* leaf_type_of(PyObject* value) {
  PyObject* type = (PyObject*)Py_TYPE(value);
  for (size_t i = 0; i < cache_size; ++i) {
    if (cache[i].type == type) return &cache[i].found;
  }
  leaf_type found = {LEAF_OTHER, NULL, NULL, NULL};
  PyObject* answer =
      leaf_classifier ? PyObject_CallFunctionObjArgs(leaf_classifier, value, NULL) : NULL;
  if (!answer) return NULL;
  found.kind = (int)PyLong_AsLong(answer);
  Py_DECREF(answer);
  if (found.kind == LEAF_EXCHANGE) {
    found.exchange = shw_dl_exchange_of(type);
    if (!found.exchange) found.kind = LEAF_OTHER;
    found.is_conj = method_of(type, "is_conj");
    found.is_neg = method_of(type, "is_neg");
  }
  return remember(type, &found);
}

static int hold(columns* self, PyObject* owner) {
  PyObject** room = vector_push(&self->owners, sizeof *room);
  if (!room) return -1;
  Py_INCREF(owner);
  *room = owner;
  return 0;
}

static int is_row_major(const int64_t* shape, const int64_t* strides, int32_t ndim) {
  int64_t expected = 1;
  for (int32_t i = ndim - 1; i >= 0; --i) {
    if (strides[i] != expected) return 0;
    expected *= shape[i];
  }
  return 1;
}

static void tensor_of_dl(const shw_dl_tensor* from, shw_tensor* to) {
  *to = (shw_tensor)SHW_TENSOR_INIT; /* a call for each tensor would show */
  to->data = from->data;
  to->byte_offset = from->byte_offset;
  to->device_type = from->device_type;
  to->device_id = from->device_id;
  to->dtype = shw_dtype_from_dlpack(from->type);
  to->ndim = from->ndim;
  to->shape = from->shape;
  to->strides =
      from->strides && !is_row_major(from->shape, from->strides, from->ndim) ? from->strides : NULL;
}

/* 1 when a method answers true, 0 when false or there is none, -1 with an exception. */
static int asks(PyObject* value, PyObject* method) {
  PyObject* answer = method ? PyObject_CallFunctionObjArgs(method, value, NULL) : NULL;
  if (!answer) return method ? -1 : 0;
  const int yes = PyObject_IsTrue(answer);
  Py_DECREF(answer);
  return yes;
}

/* torch keeps conjugation and negation of views as bits that the exchange does not carry. Neither
 * follows from shape, strides or type, so each tensor is asked. */
static int has_lazy_bit(PyObject* value, leaf_type type, const shw_tensor* tensor) {
  PyObject *is_conj = type.is_conj, *is_neg = type.is_neg;
  Py_XINCREF(is_conj); /* a method that is Python code may drive the type out of the cache */
  Py_XINCREF(is_neg);
  const int is_complex = tensor->dtype >= SHW_COMPLEX32 && tensor->dtype <= SHW_COMPLEX128;
  int answer = is_complex ? asks(value, is_conj) : 0;
  if (!answer) answer = asks(value, is_neg);
  Py_XDECREF(is_conj);
  Py_XDECREF(is_neg);
  return answer;
}

static int add_exchange(columns* self, PyObject* value, leaf_type type, const char* name,
                        uint64_t name_size) {
  shw_dl_tensor described;
  shw_tensor tensor;
  if (type.exchange->tensor_from_object(value, &described) != 0) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_BufferError, "the tensor cannot be exchanged");
    return -1;
  }
  /* What lies on a device is left to the caller, who may have a way to stage it. */
  if (described.device_type != SHW_DEVICE_CPU && described.device_type != SHW_DEVICE_CUDA_HOST)
    return 0;
  tensor_of_dl(&described, &tensor);
  if (!tensor.dtype) {
    shw_py_fail(
        SHW_UNIMPLEMENTED,
        "tensor '%.*s' has a DLPack dtype that cannot be stored: code %d, %d bits, %d lanes",
        (int)name_size, name, (int)(described.type & 255), (int)(described.type >> 8 & 255),
        (int)(described.type >> 16));
    return -1;
  }
  const int lazy = has_lazy_bit(value, type, &tensor);
  if (lazy < 0) return -1;
  if (lazy) {
    shw_py_fail(SHW_INVALID_ARGUMENT,
                "tensor '%.*s' is a lazily conjugated or negated view; call resolve_conj() or "
                "resolve_neg() first",
                (int)name_size, name);
    return -1;
  }
  return columns_add_tensor(self, &tensor) < 0 || hold(self, value) < 0 ? -1 : 1;
}

/* The integer of so many bytes; the library's numbers ascend by width. */
static int32_t of_bytes(int32_t narrowest, int32_t widest, Py_ssize_t bytes) {
  for (int32_t dtype = narrowest; dtype <= widest; ++dtype) {
    if (shw_dtype_byte_size(dtype, 1) == (uint64_t)bytes) return dtype;
  }
  return 0;
}

/* dtype of a struct-module format; 0 when there is none. */
static int32_t dtype_of_format(const char* format, Py_ssize_t itemsize) {
  if (!format) format = "B";
  if (*format == '<' || *format == '=' || *format == '@' || *format == '|')
    ++format;
  else if ((*format == '>' || *format == '!') && itemsize > 1)
    return 0;
  const int complex = *format == 'Z';
  if (complex) ++format;
  if (format[0] == '\0' || format[1] != '\0') return 0;
  if (complex) return *format == 'f' ? SHW_COMPLEX64 : *format == 'd' ? SHW_COMPLEX128 : 0;
  if (*format == '?') return SHW_BOOL;
  if (strchr("bhilqn", *format)) return of_bytes(SHW_INT8, SHW_INT64, itemsize);
  if (strchr("BHILQN", *format)) return of_bytes(SHW_UINT8, SHW_UINT64, itemsize);
  return *format == 'e'   ? SHW_FLOAT16
         : *format == 'f' ? SHW_FLOAT32
         : *format == 'd' ? SHW_FLOAT64
                          : 0;
}

/* Takes over `view`, which is released here when it is no tensor. */
static int add_view(columns* self, Py_buffer* view, int read_only) {
  shw_tensor tensor = SHW_TENSOR_INIT;
  int64_t strides[RANK_MAX];
  tensor.dtype = dtype_of_format(view->format, view->itemsize);
  if (view->ndim > RANK_MAX || !tensor.dtype) {
    PyBuffer_Release(view);
    return 0;
  }
  tensor.data = view->buf;
  tensor.device_type = SHW_DEVICE_CPU;
  tensor.ndim = view->ndim;
  tensor.shape = (const int64_t*)view->shape;
  if (read_only) tensor.flags = SHW_TENSOR_READ_ONLY;
  for (int i = 0; view->strides && i < view->ndim; ++i) {
    if (view->strides[i] % view->itemsize != 0) {
      PyBuffer_Release(view);
      shw_py_fail(SHW_INVALID_ARGUMENT,
                  "strides of a buffer are no multiple of its element size; copy the array first");
      return -1;
    }
    strides[i] = view->strides[i] / view->itemsize;
  }
  if (view->strides && !is_row_major(tensor.shape, strides, tensor.ndim)) tensor.strides = strides;
  if (columns_add_tensor(self, &tensor) < 0 ||
      vector_append(&self->views, view, sizeof *view) < 0) {
    PyBuffer_Release(view);
    return -1;
  }
  return 1;
}

static int add_buffer(columns* self, PyObject* value) {
  Py_buffer view;
  int read_only = 0;
  if (self->writable &&
      PyObject_GetBuffer(value, &view, PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE) == 0) {
    return add_view(self, &view, 0);
  }
  if (self->writable) {
    PyErr_Clear();
    read_only = 1;
  }
  if (PyObject_GetBuffer(value, &view, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
    /* No format that the protocol knows: the caller tries other ways or names the type. */
    PyErr_Clear();
    return 0;
  }
  return add_view(self, &view, read_only);
}

/* Takes a DLPack capsule: renamed once the tensor is in the columns, from where its deleter is
 * called. */
static int add_capsule(columns* self, PyObject* capsule) {
  const char* name = PyCapsule_GetName(capsule);
  const int versioned = name && strcmp(name, "dltensor_versioned") == 0;
  if (!versioned && !(name && strcmp(name, "dltensor") == 0)) {
    shw_py_fail(SHW_INVALID_ARGUMENT, "a DLPack capsule was used before");
    return -1;
  }
  void* managed = PyCapsule_GetPointer(capsule, name);
  shw_tensor tensor;
  shw_tensor_init(&tensor, sizeof tensor);
  shw_error* error = NULL;
  const shw_status status = versioned ? shw_tensor_from_dlpack(managed, &tensor, &error)
                                      : shw_tensor_from_dlpack_legacy(managed, &tensor, &error);
  if (status != SHW_OK) {
    shw_py_raise(status, error);
    return -1;
  }
  const taken_dlpack taken = {managed, versioned};
  if (columns_add_tensor(self, &tensor) < 0 ||
      vector_append(&self->dlpacks, &taken, sizeof taken) < 0)
    return -1;
  return PyCapsule_SetName(capsule, versioned ? "used_dltensor_versioned" : "used_dltensor") < 0
             ? -1
             : 1;
}

int columns_add_leaf(columns* self, PyObject* value, const leaf_type* type, const char* name,
                     uint64_t name_size) {
  if (type->kind == LEAF_EXCHANGE) return add_exchange(self, value, *type, name, name_size);
  if (type->kind == LEAF_BUFFER) return add_buffer(self, value);
  if (type->kind == LEAF_OWN) {
    shw_tensor tensor;
    shw_tensor_init(&tensor, sizeof tensor);
    if (!shw_py_tensor_describe(value, &tensor)) return 0;
    return columns_add_tensor(self, &tensor) < 0 || hold(self, value) < 0 ? -1 : 1;
  }
  return PyCapsule_CheckExact(value) ? add_capsule(self, value) : 0;
}

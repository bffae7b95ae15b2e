/* SPDX-License-Identifier: Apache-2.0
 *
 * The extension module of shardwright.torch: items of torch's save and load plans in columns. It
 * stands beside the neutral module, which knows nothing of torch, over the same library. Its types
 * are declared in _shw_torch.pyi. */
#include "bindings/python/torch_native/reads.h"

#define ONE_ARGUMENT(name)                                          \
  static PyObject* call_##name(PyObject* module, PyObject* given) { \
    (void)module;                                                   \
    return shw_py_##name(given);                                    \
  }
ONE_ARGUMENT(items_configure)
ONE_ARGUMENT(items_encode)
ONE_ARGUMENT(items_stored)
ONE_ARGUMENT(reads_plan)
ONE_ARGUMENT(reads_prove)
ONE_ARGUMENT(reads_encode)
ONE_ARGUMENT(reads_decode)
#undef ONE_ARGUMENT

#define TWO_ARGUMENTS(name)                                                   \
  static PyObject* call_##name(PyObject* module, PyObject* given) {           \
    PyObject *first, *second;                                                 \
    (void)module;                                                             \
    if (!PyArg_UnpackTuple(given, #name, 2, 2, &first, &second)) return NULL; \
    return shw_py_##name(first, second);                                      \
  }
TWO_ARGUMENTS(items_decode)
TWO_ARGUMENTS(items_keep)
TWO_ARGUMENTS(set_error_hooks)
#undef TWO_ARGUMENTS

static PyObject* call_items_collect(PyObject* module, PyObject* given) {
  PyObject *dict, *items_of, *may_be_pinned;
  (void)module;
  if (!PyArg_UnpackTuple(given, "items_collect", 3, 3, &dict, &items_of, &may_be_pinned))
    return NULL;
  return shw_py_items_collect(dict, items_of, may_be_pinned);
}

static PyMethodDef methods[] = {
    {"items_configure", call_items_configure, METH_O, NULL},
    {"items_encode", call_items_encode, METH_O, NULL},
    {"items_collect", call_items_collect, METH_VARARGS, NULL},
    {"items_decode", call_items_decode, METH_VARARGS, NULL},
    {"items_stored", call_items_stored, METH_O, NULL},
    {"items_keep", call_items_keep, METH_VARARGS, NULL},
    {"reads_plan", call_reads_plan, METH_O, NULL},
    {"reads_prove", call_reads_prove, METH_O, NULL},
    {"reads_encode", call_reads_encode, METH_O, NULL},
    {"reads_decode", call_reads_decode, METH_O, NULL},
    {"set_error_hooks", call_set_error_hooks, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_shw_torch", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__shw_torch(void) {
  return PyModule_Create(&definition);
}

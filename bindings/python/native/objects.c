/* SPDX-License-Identifier: Apache-2.0
 *
 * What every extension module needs of Python objects: attributes, tuples of numbers, and the
 * DLPack exchange table of a type. GIL held. */
#include "bindings/python/native/dlpack_abi.h"
#include "bindings/python/native/native.h"

PyObject* shw_py_attribute(PyObject* object, const char* name) {
  PyObject* interned = PyUnicode_InternFromString(name);
  PyObject* found = interned ? PyObject_GetAttr(object, interned) : NULL;
  Py_XDECREF(interned);
  return found;
}

PyObject* shw_py_int_tuple(const int64_t* values, Py_ssize_t count) {
  PyObject* tuple = PyTuple_New(count);
  for (Py_ssize_t i = 0; tuple && i < count; ++i) {
    PyObject* value = PyLong_FromLongLong(values[i]);
    if (!value || PyTuple_SetItem(tuple, i, value) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

const shw_dl_exchange* shw_dl_exchange_of(PyObject* type) {
  PyObject* capsule = shw_py_attribute(type, "__dlpack_c_exchange_api__");
  const shw_dl_exchange* table =
      capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
  PyErr_Clear();
  Py_XDECREF(capsule); /* the table lives as long as its type */
  while (table && table->major != SHW_DL_MAJOR) table = table->previous;
  return table && table->tensor_from_object ? table : NULL;
}

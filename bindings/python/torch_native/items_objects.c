/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects of torch's planners without their constructors, which cost more than all else that makes
 * an item. GIL held. */
#include "bindings/python/torch_native/items.h"

static newfunc plain_new;
static PyObject *no_arguments, *zero_sizes[ITEM_RANK_MAX + 1];

int shw_py_pause_collector(void) {
  return PyGC_Disable();
}

void shw_py_resume_collector(int was_on) {
  if (was_on) PyGC_Enable();
}

/* By object.__new__: it gives the fields their room inside the object, which an allocation alone
 * does not. */
PyObject* shw_py_instance(PyObject* class) {
  if (!no_arguments) {
    plain_new = (newfunc)PyType_GetSlot(&PyBaseObject_Type, Py_tp_new);
    no_arguments = PyTuple_New(0);
    if (!no_arguments) return NULL;
  }
  return plain_new((PyTypeObject*)class, no_arguments, NULL);
}

int shw_py_put(PyObject* object, PyObject* name, PyObject* value) {
  const int failed = !value || PyObject_GenericSetAttr(object, name, value) < 0;
  Py_XDECREF(value);
  return failed ? -1 : 0;
}

PyObject* shw_py_untracked(PyObject* object) {
  if (object) PyObject_GC_UnTrack(object);
  return object;
}

PyObject* shw_py_shared(PyObject* object) {
  Py_INCREF(object);
  return object;
}

/* As tuple.__new__ makes an instance of a subclass, without the tuple that it would be given. */
PyObject* shw_py_size_of(const int64_t* values, uint64_t count) {
  PyTypeObject* class = (PyTypeObject*)shw_py_item_classes()->size_class;
  PyObject* made = PyType_GenericAlloc(class, (Py_ssize_t)count);
  for (uint64_t i = 0; made && i < count; ++i) {
    PyObject* value = PyLong_FromLongLong(values[i]);
    if (!value || PyTuple_SetItem(made, (Py_ssize_t)i, value) < 0) Py_CLEAR(made);
  }
  return shw_py_untracked(made);
}

PyObject* shw_py_offsets_of(const int64_t* values, uint64_t ndim) {
  for (uint64_t d = 0; d < ndim; ++d) {
    if (values[d] != 0) return shw_py_size_of(values, ndim);
  }
  if (!zero_sizes[ndim]) zero_sizes[ndim] = shw_py_size_of(values, ndim);
  return zero_sizes[ndim] ? shw_py_shared(zero_sizes[ndim]) : NULL;
}

PyObject* shw_py_index_of(PyObject* name, PyObject* offset, PyObject* hint) {
  const item_names* names = shw_py_item_names();
  PyObject* made = shw_py_instance(shw_py_item_classes()->index_class);
  if (made && (shw_py_put(made, names->fqn, shw_py_shared(name)) < 0 ||
               shw_py_put(made, names->index, shw_py_shared(hint)) < 0 ||
               (offset && shw_py_put(made, names->offset, shw_py_shared(offset)) < 0))) {
    Py_CLEAR(made);
  }
  return shw_py_untracked(made);
}

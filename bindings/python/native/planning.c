/* SPDX-License-Identifier: Apache-2.0
 *
 * Who writes each shard, from arrays with the buffer protocol that are read where they lie. The GIL
 * is given up while the library works. */
#include "bindings/native/megatron.h"
#include "bindings/python/native/native.h"

/* Arrays of shw_plan_owners: weights, sets, secondary, set offsets, holders. */
enum { WEIGHTS, SETS, SECONDARY, SET_OFFSETS, HOLDERS, OWNER_ARRAYS };

static PyObject* choose(const Py_buffer* views, const int* held, int32_t rank_count) {
  const uint64_t count = (uint64_t)views[SETS].len / 4;
  const uint64_t set_count = (uint64_t)views[SET_OFFSETS].len / 8;
  const uint64_t* cuts = views[SET_OFFSETS].buf;
  if ((uint64_t)views[WEIGHTS].len != count * 8 ||
      (held[SECONDARY] && (uint64_t)views[SECONDARY].len != count) || set_count == 0 ||
      cuts[set_count - 1] * 4 != (uint64_t)views[HOLDERS].len)
    return shw_py_fail(SHW_INVALID_ARGUMENT, "the arrays of shards or sets differ in length");
  PyObject* owners = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * 4));
  if (!owners) return NULL;
  int32_t* out = (int32_t*)(void*)PyBytes_AsString(owners);
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status = megatron_plan_owners(
      count, views[WEIGHTS].buf, views[SETS].buf, held[SECONDARY] ? views[SECONDARY].buf : NULL,
      set_count - 1, cuts, views[HOLDERS].buf, rank_count, out, &error);
  Py_END_ALLOW_THREADS if (status == SHW_OK) return owners;
  Py_DECREF(owners);
  shw_py_raise(status, error);
  return NULL;
}

PyObject* shw_py_plan_owners(PyObject* arrays, PyObject* rank_count) {
  Py_buffer views[OWNER_ARRAYS];
  int held[OWNER_ARRAYS] = {0};
  PyObject* owners = NULL;
  const long ranks = PyLong_AsLong(rank_count);
  if (PyErr_Occurred()) return NULL;
  if (!PyTuple_Check(arrays) || PyTuple_Size(arrays) != OWNER_ARRAYS) {
    PyErr_SetString(PyExc_TypeError, "expected five arrays");
    return NULL;
  }
  for (int i = 0; i < OWNER_ARRAYS; ++i) {
    PyObject* array = PyTuple_GetItem(arrays, i);
    if (i == SECONDARY && array == Py_None) continue;
    if (PyObject_GetBuffer(array, &views[i], PyBUF_SIMPLE) < 0) goto done;
    held[i] = 1;
  }
  owners = choose(views, held, ranks < 0 || ranks > INT32_MAX ? -1 : (int32_t)ranks);
done:
  for (int i = 0; i < OWNER_ARRAYS; ++i) {
    if (held[i]) PyBuffer_Release(&views[i]);
  }
  return owners;
}

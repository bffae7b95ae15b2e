/* SPDX-License-Identifier: Apache-2.0
 *
 * A Python object as collective: the table of functions that calls its methods (see HostCollective
 * in collective.py), and the operations of any collective as Python calls. Callbacks of one
 * collective come one at a time. */
#include "bindings/python/native/host.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_TIMEOUT_NS 1800000000000

static PyObject* object_of(void* user) {
  return ((shw_py_host*)user)->object;
}

/* Seconds as float, None = no limit. */
static PyObject* timeout_of(const shw_collective_call* call) {
  const int64_t timeout = call ? call->timeout_ns : 0;
  if (timeout < 0) return Py_BuildValue("");
  return PyFloat_FromDouble((double)(timeout ? timeout : DEFAULT_TIMEOUT_NS) / 1e9);
}

static shw_status on_barrier(void* user, const shw_collective_call* call, shw_error** err) {
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  return shw_py_leave(&stay, shw_py_call(object_of(user), "barrier", "(N)", timeout_of(call)), err);
}

static shw_status on_broadcast(void* user, const shw_collective_call* call, void* data,
                               uint64_t size, int32_t root, shw_error** err) {
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  PyObject* view = shw_py_lend(data, size, 1);
  PyObject* done =
      view ? shw_py_call(object_of(user), "broadcast", "(OiN)", view, (int)root, timeout_of(call))
           : NULL;
  return shw_py_leave(&stay, shw_py_take_back(view, done), err);
}

static shw_status on_all_gather(void* user, const shw_collective_call* call, const void* in,
                                uint64_t size, void* out, shw_error** err) {
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  PyObject* mine = shw_py_lend(in, size, 0);
  PyObject* all = shw_py_lend(out, size * (uint64_t)((shw_py_host*)user)->ranks, 1);
  PyObject* done =
      mine && all ? shw_py_call(object_of(user), "all_gather", "(OON)", mine, all, timeout_of(call))
                  : NULL;
  return shw_py_leave(&stay, shw_py_take_back(all, shw_py_take_back(mine, done)), err);
}

/* The sizes as a list, or None for NULL; their sum. */
static PyObject* list_of_sizes(const void* user, const uint64_t* sizes, uint64_t* total) {
  const int32_t ranks = ((const shw_py_host*)user)->ranks;
  *total = 0;
  if (!sizes) return Py_BuildValue("");
  PyObject* list = PyList_New(ranks);
  for (int32_t i = 0; list && i < ranks; ++i) {
    *total += sizes[i];
    PyObject* number = PyLong_FromUnsignedLongLong(sizes[i]);
    if (!number || PyList_SetItem(list, i, number) < 0) Py_CLEAR(list);
  }
  return list;
}

static shw_status on_all_gather_v(void* user, const shw_collective_call* call, const void* in,
                                  uint64_t size, void* out, const uint64_t* sizes,
                                  shw_error** err) {
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  uint64_t total = 0;
  PyObject* list = list_of_sizes(user, sizes, &total);
  PyObject* mine = shw_py_lend(in, size, 0);
  PyObject* all = shw_py_lend(out, total, 1);
  PyObject* done = list && mine && all ? shw_py_call(object_of(user), "all_gather_v", "(OOON)",
                                                     mine, all, list, timeout_of(call))
                                       : NULL;
  Py_XDECREF(list);
  return shw_py_leave(&stay, shw_py_take_back(all, shw_py_take_back(mine, done)), err);
}

static shw_status on_gather_v(void* user, const shw_collective_call* call, const void* in,
                              uint64_t size, void* out, const uint64_t* sizes, int32_t root,
                              shw_error** err) {
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  uint64_t total = 0;
  PyObject* list = list_of_sizes(user, sizes, &total);
  PyObject* mine = shw_py_lend(in, size, 0);
  PyObject* all = shw_py_lend(out, total, 1);
  PyObject* done = list && mine && all ? shw_py_call(object_of(user), "gather_v", "(OOOiN)", mine,
                                                     all, list, (int)root, timeout_of(call))
                                       : NULL;
  Py_XDECREF(list);
  return shw_py_leave(&stay, shw_py_take_back(all, shw_py_take_back(mine, done)), err);
}

static shw_status on_scatter_v(void* user, const shw_collective_call* call, const void* in,
                               const uint64_t* sizes, void* out, uint64_t size, int32_t root,
                               shw_error** err) {
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  uint64_t total = 0;
  PyObject* list = list_of_sizes(user, sizes, &total);
  PyObject* all = shw_py_lend(in, total, 0);
  PyObject* mine = shw_py_lend(out, size, 1);
  PyObject* done = list && mine && all ? shw_py_call(object_of(user), "scatter_v", "(OOOiN)", all,
                                                     list, mine, (int)root, timeout_of(call))
                                       : NULL;
  Py_XDECREF(list);
  return shw_py_leave(&stay, shw_py_take_back(all, shw_py_take_back(mine, done)), err);
}

static shw_status on_all_to_all_v(void* user, const shw_collective_call* call, const void* in,
                                  const uint64_t* in_sizes, void* out, const uint64_t* out_sizes,
                                  shw_error** err) {
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  uint64_t sent_bytes = 0, received_bytes = 0;
  PyObject* sent_sizes = list_of_sizes(user, in_sizes, &sent_bytes);
  PyObject* received_sizes = list_of_sizes(user, out_sizes, &received_bytes);
  PyObject* sent = shw_py_lend(in, sent_bytes, 0);
  PyObject* received = shw_py_lend(out, received_bytes, 1);
  PyObject* done = sent_sizes && received_sizes && sent && received
                       ? shw_py_call(object_of(user), "all_to_all_v", "(OOOON)", sent, sent_sizes,
                                     received, received_sizes, timeout_of(call))
                       : NULL;
  Py_XDECREF(sent_sizes);
  Py_XDECREF(received_sizes);
  return shw_py_leave(&stay, shw_py_take_back(received, shw_py_take_back(sent, done)), err);
}

static const char* const reduce_words[] = {"min", "max", "sum"};

static shw_status on_all_reduce(void* user, const shw_collective_call* call, int64_t* values,
                                uint64_t count, int32_t operation, shw_error** err) {
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  const char* word = operation >= 0 && operation < 3 ? reduce_words[operation] : "unknown";
  PyObject* numbers = shw_py_lend_numbers(values, count);
  PyObject* done = numbers ? shw_py_call(object_of(user), "all_reduce_i64", "(OsN)", numbers, word,
                                         timeout_of(call))
                           : NULL;
  return shw_py_leave(&stay, shw_py_take_back(numbers, done), err);
}

static void on_abort(void* user, shw_status code, const char* message, uint64_t message_size) {
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return;
  PyObject* text =
      PyUnicode_DecodeUTF8(message ? message : "", (Py_ssize_t)message_size, "replace");
  PyObject* done = text ? shw_py_call(object_of(user), "abort", "(iO)", (int)code, text) : NULL;
  if (!done) PyErr_WriteUnraisable(object_of(user));
  Py_XDECREF(done);
  Py_XDECREF(text);
  shw_py_exit(&stay);
}

static int attribute(PyObject* object, const char* name, int32_t* out) {
  PyObject* value = shw_py_attribute(object, name);
  const long number = value ? PyLong_AsLong(value) : -1;
  Py_XDECREF(value);
  *out = (int32_t)number;
  return PyErr_Occurred() ? -1 : 0;
}

/* Whether there is an attribute of the name. PyObject_HasAttrString would leave a text of its own
 * in the cache of attributes each time. */
static int has_method(PyObject* object, const char* name) {
  PyObject* method = shw_py_attribute(object, name);
  const int found = method != NULL;
  if (!found) PyErr_Clear();
  Py_XDECREF(method);
  return found;
}

PyObject* shw_py_collective_create(PyObject* object) {
  shw_py_host* host = shw_py_host_create(object, "host");
  if (!host) return NULL;
  shw_collective_vtable table;
  shw_collective_vtable_init(&table, sizeof table);
  if (attribute(object, "rank", &table.rank) < 0 || attribute(object, "size", &table.size) < 0) {
    shw_py_host_release(host);
    return NULL;
  }
  host->ranks = table.size;
  table.name = PyBytes_AsString(host->name);
  table.user = host;
  table.barrier = on_barrier;
  table.broadcast = on_broadcast;
  table.all_gather = on_all_gather;
  table.all_gather_v = on_all_gather_v;
  if (has_method(object, "gather_v")) table.gather_v = on_gather_v;
  if (has_method(object, "scatter_v")) table.scatter_v = on_scatter_v;
  if (has_method(object, "all_to_all_v")) table.all_to_all_v = on_all_to_all_v;
  table.all_reduce_i64 = on_all_reduce;
  table.abort = on_abort;
  table.release = shw_py_host_release;
  shw_collective* collective = NULL;
  shw_error* error = NULL;
  const shw_status status = shw_collective_create(&table, &collective, &error);
  if (status == SHW_OK) return shw_py_own_collective(collective);
  shw_py_host_release(host);
  shw_py_raise(status, error);
  return NULL;
}

PyObject* shw_py_collective_create_node(PyObject* capsule, PyObject* timeout_ns) {
  void* inner = NULL;
  shw_collective_call call = SHW_COLLECTIVE_CALL_INIT;
  call.timeout_ns = PyLong_AsLongLong(timeout_ns);
  if (PyErr_Occurred() || shw_py_handle(capsule, "shw_collective", &inner) < 0) return NULL;
  shw_collective* collective = NULL;
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status = shw_collective_create_node(inner, &call, &collective, &error);
  Py_END_ALLOW_THREADS if (status == SHW_OK) return shw_py_own_collective(collective);
  shw_py_raise(status, error);
  return NULL;
}

/* ---- operations of any collective ---- */

static PyObject* finish(shw_status status, shw_error* error, PyObject* result) {
  if (status == SHW_OK) return result;
  Py_XDECREF(result);
  shw_py_raise(status, error);
  return NULL;
}

static PyObject* call_broadcast(shw_collective* collective, PyObject* arguments) {
  PyObject* data;
  int root;
  if (!PyArg_ParseTuple(arguments, "Si", &data, &root)) return NULL;
  const Py_ssize_t size = PyBytes_Size(data);
  PyObject* result = PyBytes_FromStringAndSize(NULL, size);
  if (!result) return NULL;
  char* bytes = PyBytes_AsString(result);
  memcpy(bytes, PyBytes_AsString(data), (size_t)size);
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status =
      shw_collective_broadcast(collective, NULL, bytes, (uint64_t)size, (int32_t)root, &error);
  Py_END_ALLOW_THREADS return finish(status, error, result);
}

/* Sizes of all ranks and their sum where `list` is not None; -1 with an exception set. */
static int take_sizes(shw_collective* collective, PyObject* list, shw_py_blob* sizes,
                      uint64_t* total) {
  *total = 0;
  if (list == Py_None) return 0;
  if (shw_py_indices(list, sizes) < 0) return -1;
  for (uint64_t i = 0; i < sizes->count; ++i) *total += sizes->offsets[i];
  if (sizes->count == (uint64_t)shw_collective_size(collective)) return 0;
  shw_py_blob_free(sizes);
  shw_py_fail(SHW_INVALID_ARGUMENT, "parameter sizes needs one value per rank");
  return -1;
}

/* (bytes, sizes of all ranks or None where they are equal) */
static PyObject* call_all_gather(shw_collective* collective, PyObject* arguments) {
  PyObject *data, *list;
  if (!PyArg_ParseTuple(arguments, "SO", &data, &list)) return NULL;
  const uint64_t size = (uint64_t)PyBytes_Size(data);
  shw_py_blob sizes = {0};
  uint64_t total = 0;
  if (take_sizes(collective, list, &sizes, &total) < 0) return NULL;
  if (list == Py_None) total = size * (uint64_t)shw_collective_size(collective);
  PyObject* result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)total);
  char* all = result ? PyBytes_AsString(result) : NULL;
  const char* mine = PyBytes_AsString(data);
  shw_error* error = NULL;
  shw_status status = SHW_OK;
  if (all) {
    Py_BEGIN_ALLOW_THREADS status =
        sizes.offsets
            ? shw_collective_all_gather_v(collective, NULL, mine, size, all, sizes.offsets, &error)
            : shw_collective_all_gather(collective, NULL, mine, size, all, &error);
    Py_END_ALLOW_THREADS
  }
  shw_py_blob_free(&sizes);
  return finish(status, error, result);
}

/* (bytes, sizes of all ranks or None, root): at the root the bytes of all, elsewhere none */
static PyObject* call_gather(shw_collective* collective, PyObject* arguments) {
  PyObject *data, *list;
  int root;
  shw_py_blob sizes = {0};
  uint64_t total = 0;
  if (!PyArg_ParseTuple(arguments, "SOi", &data, &list, &root)) return NULL;
  if (take_sizes(collective, list, &sizes, &total) < 0) return NULL;
  if (shw_collective_rank(collective) != root) total = 0;
  PyObject* result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)total);
  char* all = result ? PyBytes_AsString(result) : NULL;
  const uint64_t size = (uint64_t)PyBytes_Size(data);
  const char* mine = PyBytes_AsString(data);
  shw_error* error = NULL;
  shw_status status = SHW_OK;
  if (all) {
    Py_BEGIN_ALLOW_THREADS status = shw_collective_gather_v(collective, NULL, mine, size, all,
                                                            sizes.offsets, (int32_t)root, &error);
    Py_END_ALLOW_THREADS
  }
  shw_py_blob_free(&sizes);
  return finish(status, error, result);
}

/* (bytes of all ranks, their sizes or None, bytes for this rank, root) */
static PyObject* call_scatter(shw_collective* collective, PyObject* arguments) {
  PyObject *data, *list;
  unsigned long long size;
  int root;
  shw_py_blob sizes = {0};
  uint64_t total = 0;
  if (!PyArg_ParseTuple(arguments, "SOKi", &data, &list, &size, &root)) return NULL;
  if (take_sizes(collective, list, &sizes, &total) < 0) return NULL;
  if (total > (uint64_t)PyBytes_Size(data)) {
    shw_py_blob_free(&sizes);
    return shw_py_fail(SHW_INVALID_ARGUMENT, "parameter sizes says more bytes than there are");
  }
  PyObject* result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
  char* mine = result ? PyBytes_AsString(result) : NULL;
  const char* all = PyBytes_AsString(data);
  shw_error* error = NULL;
  shw_status status = SHW_OK;
  if (mine) {
    Py_BEGIN_ALLOW_THREADS status = shw_collective_scatter_v(
        collective, NULL, all, sizes.offsets, mine, (uint64_t)size, (int32_t)root, &error);
    Py_END_ALLOW_THREADS
  }
  shw_py_blob_free(&sizes);
  return finish(status, error, result);
}

/* (bytes for all ranks, their sizes, sizes of what comes from each) */
static PyObject* call_all_to_all(shw_collective* collective, PyObject* arguments) {
  PyObject *data, *sent_list, *received_list;
  shw_py_blob sent_sizes = {0}, received_sizes = {0};
  uint64_t sent_bytes = 0, received_bytes = 0;
  if (!PyArg_ParseTuple(arguments, "SO!O!", &data, &PyList_Type, &sent_list, &PyList_Type,
                        &received_list))
    return NULL;
  PyObject* result = NULL;
  shw_error* error = NULL;
  shw_status status = SHW_OK;
  if (take_sizes(collective, sent_list, &sent_sizes, &sent_bytes) == 0 &&
      take_sizes(collective, received_list, &received_sizes, &received_bytes) == 0) {
    if (sent_bytes == (uint64_t)PyBytes_Size(data)) {
      result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)received_bytes);
    } else {
      shw_py_fail(SHW_INVALID_ARGUMENT, "parameter sizes says other bytes than there are");
    }
  }
  if (result) {
    const char* sent = PyBytes_AsString(data);
    char* received = PyBytes_AsString(result);
    Py_BEGIN_ALLOW_THREADS status = shw_collective_all_to_all_v(
        collective, NULL, sent, sent_sizes.offsets, received, received_sizes.offsets, &error);
    Py_END_ALLOW_THREADS
  }
  shw_py_blob_free(&sent_sizes);
  shw_py_blob_free(&received_sizes);
  return finish(status, error, result);
}

static PyObject* call_all_reduce(shw_collective* collective, PyObject* arguments) {
  PyObject* list;
  int operation;
  if (!PyArg_ParseTuple(arguments, "Oi", &list, &operation)) return NULL;
  int64_t values[64];
  const Py_ssize_t count = shw_py_int64s(list, values, 64);
  if (count < 0) return NULL;
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status = shw_collective_all_reduce_i64(
      collective, NULL, values, (uint64_t)count, (int32_t)operation, &error);
  Py_END_ALLOW_THREADS return finish(status, error,
                                     status == SHW_OK ? shw_py_int_tuple(values, count) : NULL);
}

PyObject* shw_py_collective_call(PyObject* capsule, PyObject* operation, PyObject* arguments) {
  void* collective = NULL;
  const char* word = PyUnicode_AsUTF8AndSize(operation, NULL);
  if (!word || shw_py_handle(capsule, "shw_collective", &collective) < 0) return NULL;
  if (strcmp(word, "broadcast") == 0) return call_broadcast(collective, arguments);
  if (strcmp(word, "all_gather") == 0) return call_all_gather(collective, arguments);
  if (strcmp(word, "gather") == 0) return call_gather(collective, arguments);
  if (strcmp(word, "scatter") == 0) return call_scatter(collective, arguments);
  if (strcmp(word, "all_to_all") == 0) return call_all_to_all(collective, arguments);
  if (strcmp(word, "all_reduce_i64") == 0) return call_all_reduce(collective, arguments);
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status = shw_collective_barrier(collective, NULL, &error);
  Py_END_ALLOW_THREADS return finish(status, error, Py_BuildValue(""));
}

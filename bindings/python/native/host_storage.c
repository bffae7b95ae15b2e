/* SPDX-License-Identifier: Apache-2.0
 *
 * A Python object as storage: the table of functions that calls its methods (see HostStorage in
 * storage.py), and a read. Callbacks come from any thread
 * of the library. */
#include "bindings/python/native/host.h"

static PyObject* object_of(void* user) {
  return ((shw_py_host*)user)->object;
}

static shw_status on_open(void* user, const char* key, uint64_t key_size, int32_t mode,
                          void** object, shw_error** err) {
  static const char* const words[] = {"read", "create", "create_visible", "update"};
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  const char* word = mode >= 0 && mode < 4 ? words[mode] : "unknown";
  PyObject* made = shw_py_call(object_of(user), "open", "(s#s)", key, (Py_ssize_t)key_size, word);
  if (made) {
    *object = made;
    Py_INCREF(made);
  }
  return shw_py_leave(&stay, made, err);
}

/* close, abort and release cannot fail: an exception goes to the unraisable hook. */
static void call_quietly(void* object, const char* method, int last) {
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return;
  PyObject* done = shw_py_call(object, method, "()");
  if (!done) PyErr_WriteUnraisable(object);
  Py_XDECREF(done);
  if (last) Py_DECREF((PyObject*)object);
  shw_py_exit(&stay);
}
static void on_close(void* user, void* object) {
  (void)user;
  call_quietly(object, "close", 1);
}
static void on_abort(void* user, void* object) {
  (void)user;
  call_quietly(object, "abort", 0);
}

/* A TypeError that names storage, method and result in place of the exception that reading the
 * result gave; -1. */
static int wrong_result(void* user, const char* method, PyObject* given, const char* expected) {
  if (PyErr_ExceptionMatches(PyExc_MemoryError)) return -1;
  PyErr_Clear();
  PyErr_Format(PyExc_TypeError, "%s of the storage '%s' gave %R where %s is expected", method,
               PyBytes_AsString(((shw_py_host*)user)->name), given, expected);
  return -1;
}

/* Gives (size, modified_ns, version) to the sink; what the sink says, or -1 with an exception. */
static int give_stat(void* user, PyObject* tuple, shw_storage_entry* entry,
                     shw_storage_list_fn sink, void* sink_user) {
  unsigned long long size;
  long long modified;
  Py_ssize_t version_size;
  if (!PyTuple_Check(tuple) ||
      !PyArg_ParseTuple(tuple, "KLs#", &size, &modified, &entry->version, &version_size))
    return wrong_result(user, "stat", tuple, "a tuple (size, modified_ns, version text)");
  entry->size = size;
  entry->modified_ns = modified;
  entry->version_size = (uint64_t)version_size;
  return sink(sink_user, entry);
}

static shw_status on_stat(void* user, const char* key, uint64_t key_size, shw_storage_list_fn sink,
                          void* sink_user, shw_error** err) {
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  shw_storage_entry entry;
  shw_storage_entry_init(&entry, sizeof entry);
  entry.key = key;
  entry.key_size = key_size;
  PyObject* found = shw_py_call(object_of(user), "stat", "(s#)", key, (Py_ssize_t)key_size);
  shw_status taken = found ? give_stat(user, found, &entry, sink, sink_user) : SHW_OK;
  if (PyErr_Occurred()) Py_CLEAR(found);
  const shw_status status = shw_py_leave(&stay, found, err);
  return status == SHW_OK ? taken : status;
}

/* Gives one (key, size, modified_ns, version) to the sink; what the sink says, or -1 with an
 * exception. */
static int give_entry(void* user, PyObject* row, shw_storage_list_fn sink, void* sink_user) {
  shw_storage_entry entry;
  shw_storage_entry_init(&entry, sizeof entry);
  Py_ssize_t key_size, version_size;
  unsigned long long size;
  long long modified;
  if (!PyTuple_Check(row) || !PyArg_ParseTuple(row, "s#KLs#", &entry.key, &key_size, &size,
                                               &modified, &entry.version, &version_size))
    return wrong_result(user, "list", row, "a tuple (key, size, modified_ns, version text)");
  entry.key_size = (uint64_t)key_size;
  entry.size = size;
  entry.modified_ns = modified;
  entry.version_size = (uint64_t)version_size;
  return sink(sink_user, &entry);
}

/* Whether there is a method of that name; a mutex that is called `lock` is none. */
static int offers(PyObject* object, const char* method) {
  PyObject* found = shw_py_attribute(object, method);
  const int callable = found && PyCallable_Check(found);
  PyErr_Clear();
  Py_XDECREF(found);
  return callable;
}

static shw_status on_list(void* user, const char* prefix, uint64_t prefix_size, int32_t delimiter,
                          shw_storage_list_fn sink, void* sink_user, shw_error** err) {
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  const int level = delimiter != SHW_STORAGE_NO_DELIMITER && offers(object_of(user), "list_level");
  PyObject* rows = shw_py_call(object_of(user), level ? "list_level" : "list", "(s#)", prefix,
                               (Py_ssize_t)prefix_size);
  PyObject* walk = rows ? PyObject_GetIter(rows) : NULL;
  if (rows && !walk)
    wrong_result(user, "list", rows, "tuples (key, size, modified_ns, version text)");
  Py_XDECREF(rows);
  shw_status stopped = SHW_OK;
  PyObject* row = NULL;
  while (walk && stopped == SHW_OK && (row = PyIter_Next(walk)) != NULL) {
    stopped = give_entry(user, row, sink, sink_user);
    Py_DECREF(row);
  }
  if (PyErr_Occurred()) Py_CLEAR(walk);
  const shw_status status = shw_py_leave(&stay, walk, err);
  return status == SHW_OK ? stopped : status;
}

static shw_status on_read(void* user, void* object, uint64_t offset, void* data, uint64_t size,
                          uint64_t* done, shw_error** err) {
  SHW_PY_STAY stay = {0};
  *done = 0;
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  PyObject* view = shw_py_lend(data, size, 1);
  PyObject* result =
      view ? shw_py_call(object, "read_at", "(KO)", (unsigned long long)offset, view) : NULL;
  result = shw_py_take_back(view, result);
  const long long count = result ? PyLong_AsLongLong(result) : 0;
  if (result && PyErr_Occurred()) {
    wrong_result(user, "read_at", result, "the number of bytes");
    Py_CLEAR(result);
  }
  if (result && (count < 0 || (uint64_t)count > size)) {
    PyErr_Format(PyExc_ValueError,
                 "read_at gave %lld as the number of bytes; it was asked for %llu", count,
                 (unsigned long long)size);
    Py_CLEAR(result);
  }
  if (result) *done = (uint64_t)count;
  const shw_status status = shw_py_leave(&stay, result, err);
  return status == SHW_OK && (uint64_t)count < size ? SHW_OUT_OF_RANGE : status;
}

static shw_status on_write(void* user, void* object, uint64_t offset, const void* data,
                           uint64_t size, shw_error** err) {
  (void)user;
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  PyObject* view = shw_py_lend(data, size, 0);
  PyObject* result =
      view ? shw_py_call(object, "write_at", "(KO)", (unsigned long long)offset, view) : NULL;
  return shw_py_leave(&stay, shw_py_take_back(view, result), err);
}

static shw_status on_truncate(void* user, void* object, uint64_t size, shw_error** err) {
  (void)user;
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  return shw_py_leave(&stay, shw_py_call(object, "truncate", "(K)", (unsigned long long)size), err);
}

static shw_status on_sync(void* user, void* object, shw_error** err) {
  (void)user;
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  return shw_py_leave(&stay, shw_py_call(object, "sync", "()"), err);
}

static shw_status on_commit(void* user, void* object, int32_t condition,
                            const char* expected_version, uint64_t expected_version_size,
                            shw_error** err) {
  (void)user;
  static const char* const words[] = {"none", "if_absent", "if_version"};
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  const char* word = condition >= 0 && condition < 3 ? words[condition] : "unknown";
  return shw_py_leave(
      &stay,
      shw_py_call(object, "commit", "(ss#)", word, expected_version ? expected_version : "",
                  (Py_ssize_t)expected_version_size),
      err);
}

static shw_status on_remove(void* user, const char* key, uint64_t key_size, shw_error** err) {
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  return shw_py_leave(
      &stay, shw_py_call(object_of(user), "remove", "(s#)", key, (Py_ssize_t)key_size), err);
}

static shw_status on_space(void* user, const char* key, uint64_t key_size, uint64_t* free_bytes,
                           shw_error** err) {
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  PyObject* found = shw_py_call(object_of(user), "space", "(s#)", key, (Py_ssize_t)key_size);
  const uint64_t count = found ? PyLong_AsUnsignedLongLong(found) : 0;
  if (found && PyErr_Occurred()) {
    wrong_result(user, "space", found, "a number of bytes");
    Py_CLEAR(found);
  }
  if (found) *free_bytes = count;
  return shw_py_leave(&stay, found, err);
}

static shw_status on_lock(void* user, const char* key, uint64_t key_size, int32_t mode, void** lock,
                          shw_error** err) {
  SHW_PY_STAY stay = {0};
  if (!shw_py_enter(&stay)) return SHW_UNAVAILABLE;
  PyObject* found = shw_py_call(object_of(user), "lock", "(s#s)", key, (Py_ssize_t)key_size,
                                mode == SHW_LOCK_SHARED ? "shared" : "exclusive");
  const int held = found && found != Py_None;
  if (held) {
    *lock = found;
    Py_INCREF(found);
  }
  const shw_status status = shw_py_leave(&stay, found, err);
  return status == SHW_OK && !held ? SHW_PENDING : status;
}

static void on_unlock(void* user, void* lock) {
  (void)user;
  call_quietly(lock, "release", 1);
}

/* An attribute that may be missing. */
static uint64_t number_of(PyObject* object, const char* attribute, uint64_t otherwise) {
  PyObject* value = shw_py_attribute(object, attribute);
  const uint64_t number = value ? PyLong_AsUnsignedLongLong(value) : otherwise;
  if (PyErr_Occurred()) PyErr_Clear();
  Py_XDECREF(value);
  return number;
}

PyObject* shw_py_storage_create(PyObject* object) {
  shw_py_host* host = shw_py_host_create(object, "host");
  if (!host) return NULL;
  shw_storage_vtable table;
  shw_storage_vtable_init(&table, sizeof table);
  table.capabilities = number_of(object, "capabilities", SHW_STORAGE_ATOMIC_COMMIT);
  table.alignment = number_of(object, "alignment", 0);
  table.part_bytes = number_of(object, "part_bytes", 0);
  table.name = PyBytes_AsString(host->name);
  table.user = host;
  table.open = on_open;
  table.close = on_close;
  table.stat = on_stat;
  table.list = on_list;
  table.read_at = on_read;
  table.write_at = on_write;
  if (table.capabilities & SHW_STORAGE_DIRECT_IO) table.truncate = on_truncate;
  table.sync = on_sync;
  table.commit = on_commit;
  table.abort = on_abort;
  table.remove = on_remove;
  if (offers(object, "space")) table.space = on_space;
  if (offers(object, "lock")) {
    table.lock = on_lock;
    table.unlock = on_unlock;
  }
  table.release = shw_py_host_release;
  shw_storage* storage = NULL;
  shw_error* error = NULL;
  const shw_status status = shw_storage_create(&table, &storage, &error);
  if (status == SHW_OK) return shw_py_own_storage(storage);
  shw_py_host_release(host);
  shw_py_raise(status, error);
  return NULL;
}

PyObject* shw_py_storage_read(PyObject* capsule, PyObject* key_object, PyObject* offset_object,
                              PyObject* size_object) {
  void* storage = NULL;
  const char* key = NULL;
  uint64_t key_size = 0;
  const unsigned long long offset = PyLong_AsUnsignedLongLong(offset_object);
  const Py_ssize_t size = PyLong_AsSsize_t(size_object);
  if (PyErr_Occurred() || shw_py_handle(capsule, "shw_storage", &storage) < 0 ||
      shw_py_text(key_object, &key, &key_size) < 0) {
    return NULL;
  }
  PyObject* bytes = PyBytes_FromStringAndSize(NULL, size);
  char* data = bytes ? PyBytes_AsString(bytes) : NULL;
  if (!data) return NULL;
  shw_error* error = NULL;
  shw_status status;
  Py_BEGIN_ALLOW_THREADS status =
      shw_storage_read(storage, key, key_size, offset, data, (uint64_t)size, &error);
  Py_END_ALLOW_THREADS if (status == SHW_OK) return bytes;
  Py_DECREF(bytes);
  shw_py_raise(status, error);
  return NULL;
}

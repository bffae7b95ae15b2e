/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles of the library as capsules. The destructor releases the handle; close releases it early
 * and marks the capsule, so that a later use raises instead of touching freed memory. Releases run
 * without the GIL, because the last release of a context may wait for a thread that is inside a
 * Python callback. */
#include "bindings/python/native/native.h"

#include <string.h>

static const char closed_name[] = "shw_closed";

/* From a destructor: an exception that is on its way stays set, whatever a host's close() does. */
static void release_quietly(void (*release)(void* pointer), void* pointer) {
  if (shw_py_finalizing()) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Py_BEGIN_ALLOW_THREADS release(pointer);
  Py_END_ALLOW_THREADS PyErr_Restore(type, value, trace);
}

#define DEFINE_HANDLE(noun)                                                  \
  static void release_##noun(void* pointer) {                                \
    shw_##noun##_release((shw_##noun*)pointer);                              \
  }                                                                          \
  static void destroy_##noun(PyObject* capsule) {                            \
    void* pointer = PyCapsule_GetPointer(capsule, "shw_" #noun);             \
    if (!pointer) {                                                          \
      PyErr_Clear();                                                         \
      return;                                                                \
    }                                                                        \
    release_quietly(release_##noun, pointer);                                \
  }                                                                          \
  PyObject* shw_py_own_##noun(shw_##noun* handle) {                          \
    PyObject* capsule = PyCapsule_New(handle, "shw_" #noun, destroy_##noun); \
    if (!capsule) release_##noun(handle);                                    \
    return capsule;                                                          \
  }
SHW_PY_EACH_HANDLE(DEFINE_HANDLE)
#undef DEFINE_HANDLE

typedef struct {
  const char* name;
  void (*release)(void* pointer);
} handle_kind;

static const handle_kind kinds[] = {
#define ROW(noun) {"shw_" #noun, release_##noun},
    SHW_PY_EACH_HANDLE(ROW)
#undef ROW
};

int shw_py_handle(PyObject* object, const char* name, void** out) {
  *out = NULL;
  if (object == Py_None) return 0;
  if (PyCapsule_CheckExact(object)) {
    const char* found = PyCapsule_GetName(object);
    if (found && strcmp(found, name) == 0) {
      *out = PyCapsule_GetPointer(object, found);
      return *out ? 0 : -1;
    }
    if (found && strcmp(found, closed_name) == 0) {
      shw_py_fail(SHW_FAILED_PRECONDITION,
                  "the %s was closed before this call; open or make it again", name + 4);
      return -1;
    }
  }
  PyErr_Format(PyExc_TypeError, "expected a handle of kind %s", name);
  return -1;
}

PyObject* shw_py_close(PyObject* handle) {
  const char* found = PyCapsule_CheckExact(handle) ? PyCapsule_GetName(handle) : NULL;
  for (size_t i = 0; found && i < sizeof kinds / sizeof kinds[0]; ++i) {
    if (strcmp(found, kinds[i].name) != 0) continue;
    void* pointer = PyCapsule_GetPointer(handle, found);
    if (PyCapsule_SetDestructor(handle, NULL) < 0 || PyCapsule_SetName(handle, closed_name) < 0)
      return NULL;
    Py_BEGIN_ALLOW_THREADS kinds[i].release(pointer);
    Py_END_ALLOW_THREADS break;
  }
  Py_RETURN_NONE;
}

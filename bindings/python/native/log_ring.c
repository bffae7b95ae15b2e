/* SPDX-License-Identifier: Apache-2.0
 *
 * Log records wait here until a Python thread drains them on its next call: threads of the library
 * never take the GIL to log. The ring is bounded; what does not fit is counted and told with the
 * next record. Records below the level that Python wants at the time are left out. Guarded by one
 * mutex; the level is atomic. */
#include "bindings/python/native/native.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define RING_RECORDS 256
#define TEXT_BYTES 480

typedef struct {
  int32_t level;
  uint64_t dropped;
  char component[32];
  uint32_t message_size;
  char message[TEXT_BYTES];
} ring_record;

static pthread_mutex_t ring_mutex = PTHREAD_MUTEX_INITIALIZER;
static ring_record ring[RING_RECORDS];
static uint64_t ring_first, ring_end; /* numbers of the oldest record and of the next one */
static uint64_t ring_dropped;
static atomic_int wanted_level = SHW_LOG_OFF;

PyObject* shw_py_log_set_level(PyObject* level) {
  const long wanted = PyLong_AsLong(level);
  if (PyErr_Occurred()) return NULL;
  atomic_store_explicit(&wanted_level, (int)wanted, memory_order_relaxed);
  Py_RETURN_NONE;
}

void shw_py_log_put(void* user, int32_t level, const shw_log_record* record) {
  (void)user;
  if (level < atomic_load_explicit(&wanted_level, memory_order_relaxed)) return;
  pthread_mutex_lock(&ring_mutex);
  if (ring_end - ring_first == RING_RECORDS) {
    ++ring_dropped;
  } else {
    ring_record* slot = &ring[ring_end % RING_RECORDS];
    slot->level = level;
    slot->dropped = record->dropped + ring_dropped;
    ring_dropped = 0;
    const char* component = record->component ? record->component : "";
    size_t size = strnlen(component, sizeof slot->component - 1);
    memcpy(slot->component, component, size);
    slot->component[size] = '\0';
    slot->message_size =
        (uint32_t)(record->message_size < TEXT_BYTES ? record->message_size : TEXT_BYTES);
    if (slot->message_size) memcpy(slot->message, record->message, slot->message_size);
    ++ring_end;
  }
  pthread_mutex_unlock(&ring_mutex);
}

static int ring_take(ring_record* out) {
  pthread_mutex_lock(&ring_mutex);
  const int found = ring_first != ring_end;
  if (found) *out = ring[ring_first++ % RING_RECORDS];
  pthread_mutex_unlock(&ring_mutex);
  return found;
}

PyObject* shw_py_log_drain(void) {
  PyObject* list = PyList_New(0);
  ring_record record;
  while (list && ring_take(&record)) {
    PyObject* message =
        PyUnicode_DecodeUTF8(record.message, (Py_ssize_t)record.message_size, "replace");
    PyObject* row = message ? Py_BuildValue("(isNK)", (int)record.level, record.component, message,
                                            (unsigned long long)record.dropped)
                            : NULL;
    if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

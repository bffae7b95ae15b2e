/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays of bytes that grow, for flat columns. Part of each extension module. GIL held. */
#ifndef SHW_PY_VECTOR_H
#define SHW_PY_VECTOR_H

#include "bindings/python/native/native.h"

#include <string.h>

/* Growing array of bytes. */
typedef struct {
  char* data;
  size_t size, capacity;
} vector;

/* Room for `size` more bytes, for vector_push; -1 with MemoryError. */
int vector_grow(vector* v, size_t size);
/* Room for `size` more bytes at the end, or NULL with MemoryError. */
static inline void* vector_push(vector* v, size_t size) {
  if ((!v->data || v->capacity - v->size < size) && vector_grow(v, size) < 0) return NULL;
  void* room = v->data + v->size;
  v->size += size;
  return room;
}
static inline int vector_append(vector* v, const void* data, size_t size) {
  void* room = vector_push(v, size);
  if (!room) return -1;
  if (size) memcpy(room, data, size);
  return 0;
}
void vector_free(vector* v);
#define VECTOR_COUNT(v, type) ((v).size / sizeof(type))

#endif

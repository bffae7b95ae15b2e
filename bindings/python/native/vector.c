/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays of bytes that grow. GIL held. */
#include "bindings/python/native/vector.h"

#include <stdlib.h>

int vector_grow(vector* v, size_t size) {
  const size_t least = v->capacity ? v->capacity * 2 : 256;
  const size_t capacity = least - v->size < size ? v->size + size : least;
  char* data = realloc(v->data, capacity);
  if (!data) {
    PyErr_NoMemory();
    return -1;
  }
  v->data = data;
  v->capacity = capacity;
  return 0;
}

void vector_free(vector* v) {
  free(v->data);
  *v = (vector){NULL, 0, 0};
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs of the headers between Python and C, by the generated tables. GIL held. */
#ifndef SHW_PY_STRUCTS_H
#define SHW_PY_STRUCTS_H

#include "bindings/python/native/native.h"
#include "struct_tables.h"

/* What a filled struct borrows: buffers, and copies of lists. */
typedef struct {
  Py_buffer* views;
  void** blocks;
  int view_count, block_count;
} shw_py_held;

/* Fills a struct from a dictionary of its fields; those that are not there are zero, None fills
 * none. Texts stay borrowed from the dictionary. -1 with an exception; `held` is freed in either
 * case. */
int shw_py_struct_read(PyObject* given, const shw_struct* type, void* into, shw_py_held* held);
void shw_py_struct_free(shw_py_held* held);
/* The struct as a named tuple of its fields: arrays as bytes, or None where they are NULL. */
PyObject* shw_py_struct_write(const shw_struct* type, const void* from);

#endif

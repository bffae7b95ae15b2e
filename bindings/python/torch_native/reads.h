/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads of a torch load plan as one array of int64_t.
 *
 *   read  := kind index index ndim dest_offsets[ndim] storage_offsets[ndim] lengths[ndim]
 *   kind  := READ_TENSOR | READ_BYTES
 *   index := name hint count offsets[count]      ; of the destination, then of the chunk
 *
 * `name` counts in a list of names; `hint` and `count` are READ_NONE for None, and then there are
 * no offsets. */
#ifndef SHW_PY_TORCH_READS_H
#define SHW_PY_TORCH_READS_H

#include "bindings/python/torch_native/items.h"

enum { READ_TENSOR = 0, READ_BYTES = 1, READ_NONE = -1 };

/* ---- functions of the module ---- */

/* rows: list of (name, shape, stored chunks, wanted boxes or None = all of it); of byte objects all
 * but the name are None. Gives (names, number of reads, values, first wanted box that is not
 * filled, rows in doubt), None where rows go item by item. */
PyObject* shw_py_reads_plan(PyObject* rows);
/* True where the chunks in rows of tensors fill what is wanted once, None where rows go item by
 * item, else an error. */
PyObject* shw_py_reads_prove(PyObject* rows);
/* (names, number of reads, values) of a list of ReadItems or None, and back. */
PyObject* shw_py_reads_encode(PyObject* items);
PyObject* shw_py_reads_decode(PyObject* reads);

#endif

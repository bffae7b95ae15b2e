/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of a unit as Python gives them. GIL held. */
#ifndef SHW_PY_HSDP_PARAMS_H
#define SHW_PY_HSDP_PARAMS_H

#include "bindings/python/native/columns.h"

/* A batch, and what it borrows. */
typedef struct {
  shw_hsdp_param_batch batch;
  Py_buffer dims, flags;
  shw_py_blob aliases, ranges;
} shw_py_params;

/* object: columns of names and tensors; rules: (shard dims, flags) as buffers of int32 and uint32,
 * aliases as a list of bytes, and where those of each parameter begin as a list of integers. -1
 * with an exception; to be freed in either case. */
int shw_py_params_read(PyObject* object, PyObject* rules, shw_py_params* into);
void shw_py_params_free(shw_py_params* params);

#endif

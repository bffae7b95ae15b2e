/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of HSDP, foretold: units are lists of parameters with the options of their creation. */
#include <string.h>

#include "bindings/python/native/hsdp_params.h"
#include "bindings/python/native/structs.h"

/* One unit and what it borrows. */
typedef struct {
  shw_py_params params;
  shw_hsdp_unit_options options;
  shw_py_held held;
} unit_row;

/* row: (columns, rules, fields of the options, flags). */
static int read_unit(PyObject* row, unit_row* into, shw_hsdp_estimate_unit* unit) {
  PyObject *params, *rules, *fields;
  unsigned flags;
  if (!PyArg_ParseTuple(row, "OOOI", &params, &rules, &fields, &flags) ||
      shw_py_params_read(params, rules, &into->params) < 0)
    return -1;
  shw_hsdp_unit_options_init(&into->options, sizeof into->options);
  if (shw_py_struct_read(fields, &shw_hsdp_unit_options_table, &into->options, &into->held) < 0)
    return -1;
  shw_hsdp_estimate_unit_init(unit, sizeof *unit);
  unit->flags = flags;
  unit->params = &into->params.batch;
  unit->options = &into->options;
  return 0;
}

static int read_units(PyObject* list, unit_row* rows, shw_hsdp_estimate_unit* units) {
  const Py_ssize_t count = PyList_Size(list);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* row = PyList_GetItem(list, i); /* borrowed */
    if (!row || read_unit(row, &rows[i], &units[i]) < 0) return -1;
  }
  return 0;
}

static PyObject* estimate(const shw_hsdp_estimate_unit* units, uint64_t count, PyObject* world,
                          PyObject* options, int32_t kind) {
  shw_hsdp_estimate_world ranks;
  shw_hsdp_options given;
  shw_py_held of_ranks = {0}, of_options = {0};
  shw_hsdp_estimate_world_init(&ranks, sizeof ranks);
  shw_hsdp_options_init(&given, sizeof given);
  PyObject* result = NULL;
  if (shw_py_struct_read(world, &shw_hsdp_estimate_world_table, &ranks, &of_ranks) == 0 &&
      shw_py_struct_read(options, &shw_hsdp_options_table, &given, &of_options) == 0) {
    shw_hsdp_memory out;
    shw_hsdp_memory_init(&out, sizeof out);
    shw_error* error = NULL;
    const shw_status status = shw_hsdp_estimate(units, count, &ranks, &given, kind, &out, &error);
    if (status == SHW_OK) {
      result = shw_py_struct_write(&shw_hsdp_memory_table, &out);
    } else {
      shw_py_raise(status, error);
    }
  }
  shw_py_struct_free(&of_options);
  shw_py_struct_free(&of_ranks);
  return result;
}

/* units: a list of (columns, rules, fields, flags); the memory of one kind as a named tuple. */
PyObject* shw_py_hsdp_estimate(PyObject* units, PyObject* world, PyObject* options,
                               PyObject* kind) {
  const Py_ssize_t size = PyList_Size(units);
  const long which = PyLong_AsLong(kind);
  if (size < 0 || PyErr_Occurred()) return NULL;
  const size_t count = (size_t)size;
  unit_row* rows = PyMem_Calloc(count + 1, sizeof *rows);
  shw_hsdp_estimate_unit* made = PyMem_Calloc(count + 1, sizeof *made);
  PyObject* result = NULL;
  if (!rows || !made) {
    PyErr_NoMemory();
  } else if (read_units(units, rows, made) == 0) {
    result = estimate(made, count, world, options, (int32_t)which);
  }
  for (size_t i = 0; rows && i < count; ++i) {
    shw_py_struct_free(&rows[i].held);
    shw_py_params_free(&rows[i].params);
  }
  PyMem_Free(made);
  PyMem_Free(rows);
  return result;
}

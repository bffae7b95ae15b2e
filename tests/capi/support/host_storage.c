/* SPDX-License-Identifier: Apache-2.0
 *
 * The sample storage is given what a plugin's host would give it: the makers of errors. */
#include "support/host_storage.h"

#include "examples/plugins/memory_storage.h"

shw_storage_vtable host_table(void) {
  static shw_host_api api;
  shw_error* error = NULL;
  api.struct_size = sizeof(api);
  api.error_create = shw_error_create;
  api.error_release = shw_error_release;
  shw_storage_vtable table = *memory_storage_table(&api);
  table.name = "host";
  CHECK_OK(memory_storage_open(NULL, NULL, 0, &table, &error));
  return table;
}

shw_storage* storage_of_table(const shw_storage_vtable* table) {
  shw_error* error = NULL;
  shw_storage* storage = NULL;
  CHECK_OK(shw_storage_create(table, &storage, &error));
  return storage;
}

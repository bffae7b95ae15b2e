/* SPDX-License-Identifier: Apache-2.0
 *
 * The sample storage is given what a plugin's host would give it: the makers of errors. */
#include "support/host_storage.h"

#include <pthread.h>

#include "examples/plugins/memory_storage.h"

static const shw_host_api host_api = {.struct_size = sizeof(shw_host_api),
                                      .error_create = shw_error_create,
                                      .error_release = shw_error_release};
static const shw_storage_vtable* sample_table;

/* The sample keeps its table and its host in variables of its own, as a plugin that is loaded once
 * may. */
static void load_sample(void) {
  sample_table = memory_storage_table(&host_api);
}

shw_storage_vtable host_table(void) {
  static pthread_once_t loaded = PTHREAD_ONCE_INIT;
  pthread_once(&loaded, load_sample);
  shw_error* error = NULL;
  shw_storage_vtable table = *sample_table;
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

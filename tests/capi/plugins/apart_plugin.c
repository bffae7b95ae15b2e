/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin for tests that brings the device of apart_table.h, and answers what a program needs
 * that has tensors there: "allocate BYTES" with an address of the device, "behind ADDRESS" with
 * where the host finds what lies there, "release ADDRESS BYTES", and "allocations" with how many
 * there are. */
#include <inttypes.h>
#include <shardwright/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/device/apart_table.h"

static const shw_host_api* host;
static shw_device_vtable table;

static shw_status open_device(void* user, const char* config, uint64_t config_size,
                              shw_device_vtable* vtable, shw_error** err) {
  (void)user, (void)config, (void)config_size, (void)vtable, (void)err;
  return SHW_OK;
}

static shw_status number_for(const char* asked, uintptr_t* found, shw_error** err) {
  uintptr_t address = 0;
  uint64_t bytes = 0;
  if (strcmp(asked, "allocations") == 0) {
    *found = (uintptr_t)apart_table_allocations();
  } else if (sscanf(asked, "behind %" SCNuPTR, &address) == 1) {
    *found = (uintptr_t)behind_apart_table((const void*)address);
  } else if (sscanf(asked, "release %" SCNuPTR " %" SCNu64, &address, &bytes) == 2) {
    table.memory_release(NULL, (void*)address, bytes);
  } else if (sscanf(asked, "allocate %" SCNu64, &bytes) == 1) {
    void* memory = NULL;
    const shw_status status = table.memory_allocate(NULL, bytes, &memory, err);
    *found = (uintptr_t)memory;
    return status;
  } else {
    return host->error_create(SHW_INVALID_ARGUMENT, "no such question", 16, NULL, 0, NULL, err);
  }
  return SHW_OK;
}

static shw_status answer(void* user, const char* question, uint64_t question_size, char** out,
                         uint64_t* out_size, shw_error** err) {
  uintptr_t found = 0;
  char asked[64] = {0};
  (void)user;
  memcpy(asked, question, question_size < sizeof(asked) ? question_size : sizeof(asked) - 1);
  const shw_status status = number_for(asked, &found, err);
  if (status != SHW_OK) return status;
  *out = host->allocate(NULL, 32, 1);
  if (*out == NULL) return SHW_RESOURCE_EXHAUSTED;
  *out_size = (uint64_t)snprintf(*out, 32, "%" PRIuPTR, found);
  return SHW_OK;
}

shw_status shw_plugin_v1(const shw_host_api* api, shw_plugin* out, shw_error** err);

__attribute__((visibility("default"))) shw_status shw_plugin_v1(const shw_host_api* api,
                                                                shw_plugin* out, shw_error** err) {
  (void)err;
  host = api;
  fill_apart_table(&table, NULL);
  out->name = "apart";
  out->version = "1.0";
  out->device = &table;
  out->device_open = open_device;
  out->answer = answer;
  return SHW_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugin "sample_memory": the smallest storage plugin there is. */
#include "memory_storage.h"

__attribute__((visibility("default"))) shw_status shw_plugin_v1(const shw_host_api* host,
                                                                shw_plugin* out, shw_error** err);

shw_status shw_plugin_v1(const shw_host_api* host, shw_plugin* out, shw_error** err) {
  (void)err;
  out->name = "sample_memory";
  out->version = "0.1";
  out->storage = memory_storage_table(host);
  out->storage_open = memory_storage_open;
  return SHW_OK;
}

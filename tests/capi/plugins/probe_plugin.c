/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin for tests. As it stands it keeps the host table where a test finds it; built with
 * PROBE_BROKEN it does what SHW_PROBE_PLUGIN asks for: missing_slot, new_version or error. */
#include <stdlib.h>
#include <string.h>

#include <shardwright/plugin.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED const shw_host_api* probe_host;

EXPORTED shw_status shw_plugin_v1(const shw_host_api* host, shw_plugin* out, shw_error** err);

#ifdef PROBE_BROKEN
static shw_status never_open(void* user, const char* key, uint64_t size, int32_t mode,
                             void** object, shw_error** err) {
  (void)user, (void)key, (void)size, (void)mode, (void)object, (void)err;
  return SHW_INTERNAL;
}
static void never(void* user, void* object) {
  (void)user, (void)object;
}
static shw_status never_stat(void* user, const char* key, uint64_t size, shw_storage_list_fn sink,
                             void* sink_user, shw_error** err) {
  (void)user, (void)key, (void)size, (void)sink, (void)sink_user, (void)err;
  return SHW_INTERNAL;
}
static shw_status never_list(void* user, const char* prefix, uint64_t size, int32_t delimiter,
                             shw_storage_list_fn sink, void* sink_user, shw_error** err) {
  (void)user, (void)prefix, (void)size, (void)delimiter, (void)sink, (void)sink_user, (void)err;
  return SHW_INTERNAL;
}

static shw_status break_plugin(const shw_host_api* host, shw_plugin* out, shw_error** err) {
  static shw_storage_vtable table = SHW_STORAGE_VTABLE_INIT;
  const char* way = getenv("SHW_PROBE_PLUGIN");
  if (way == NULL) return SHW_OK;
  if (strcmp(way, "error") == 0) {
    return host->error_create(SHW_UNAVAILABLE, "the probe fails", 15, NULL, 0, NULL, err);
  }
  if (strcmp(way, "new_version") == 0) {
    out->abi_major = 7;
    return SHW_OK;
  }
  if (strcmp(way, "new_minor") == 0 || strcmp(way, "old_minor") == 0) {
    out->abi_minor += *way == 'n' ? 1 : -1;
    return SHW_OK;
  }
  table.name = "broken"; /* read_at and all that follows are missing */
  table.open = never_open;
  table.close = never;
  table.stat = never_stat;
  table.list = never_list;
  out->storage = &table;
  return SHW_OK;
}
#endif

shw_status shw_plugin_v1(const shw_host_api* host, shw_plugin* out, shw_error** err) {
  probe_host = host;
  out->name = "probe";
  out->version = "1";
#ifdef PROBE_BROKEN
  return break_plugin(host, out, err);
#else
  (void)err;
  return SHW_OK;
#endif
}

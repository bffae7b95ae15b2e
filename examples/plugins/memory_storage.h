/* SPDX-License-Identifier: Apache-2.0
 *
 * A storage in memory, as a table of functions: what a storage plugin has to do, without a service
 * behind it. Also used by the faulty storage, which wraps it. Thread-safe. */
#ifndef SHARDWRIGHT_EXAMPLES_MEMORY_STORAGE_H
#define SHARDWRIGHT_EXAMPLES_MEMORY_STORAGE_H

#include <shardwright/plugin.h>

/* The table without a `user`; `host` makes the errors and must outlive all storages. */
const shw_storage_vtable* memory_storage_table(const shw_host_api* host);

/* Sets `vtable->user` to a new, empty storage. */
shw_status memory_storage_open(void* user, const char* config, uint64_t config_size,
                               shw_storage_vtable* vtable, shw_error** err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A storage of the host over the sample storage in memory (examples/plugins), for tests that change
 * slots of its table before it is made. */
#ifndef SHARDWRIGHT_TESTS_CAPI_HOST_STORAGE_H
#define SHARDWRIGHT_TESTS_CAPI_HOST_STORAGE_H

#include "check.h"

/* The table of a new, empty storage; its name is "host". The slots know its `user`. */
shw_storage_vtable host_table(void);
/* Makes the storage of a table; ends the test when that fails. */
shw_storage* storage_of_table(const shw_storage_vtable* table);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A device in C whose memory the host must not touch: it lies in pages where each access faults,
 * and what lies there is kept in pages elsewhere. Lanes are those of thread_device.h. */
#ifndef SHARDWRIGHT_TESTS_CONFORMANCE_APART_TABLE_H
#define SHARDWRIGHT_TESTS_CONFORMANCE_APART_TABLE_H

#include <shardwright/device.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* The number of the device, whose type is SHW_DEVICE_EXTENSION. */
enum { APART_TABLE_ID = 5 };

/* Fills a table. `released`, which may be NULL, counts calls of its release. */
void fill_apart_table(shw_device_vtable* vtable, int* released);

/* Where the host finds what lies at an address of such a device; ends the program for others. */
void* behind_apart_table(const void* address);

/* Allocations of all such devices that were not given back. */
int apart_table_allocations(void);

#if defined(__cplusplus)
}
#endif

#endif

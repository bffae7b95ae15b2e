/* SPDX-License-Identifier: Apache-2.0
 *
 * A device in C for the conformance suite: lanes are threads, memory is that of the host. */
#ifndef SHARDWRIGHT_TESTS_CONFORMANCE_THREAD_DEVICE_H
#define SHARDWRIGHT_TESTS_CONFORMANCE_THREAD_DEVICE_H

#include <shardwright/device.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* Fills a table. With `pinned` it has functions for pinned memory. `released`, which may be NULL,
 * counts calls of its release. */
void fill_thread_device(shw_device_vtable* vtable, int pinned, int* released);

#if defined(__cplusplus)
}
#endif

#endif

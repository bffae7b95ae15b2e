/* SPDX-License-Identifier: Apache-2.0
 *
 * A collective for ranks that are processes: each has a socket to the test that started them, which
 * brings the bytes of all ranks together and tells everybody when one of them is gone. */
#ifndef SHARDWRIGHT_TESTS_CRASH_PROCESS_COLLECTIVE_H
#define SHARDWRIGHT_TESTS_CRASH_PROCESS_COLLECTIVE_H

#include <shardwright/shardwright.h>

#include "channel.h"

/* Sends over the socket, also beside an operation of the collective. */
int collective_send(int socket, struct message message, const void* bytes);

/* NULL when it cannot be made. Each message to another rank is a step of the seam. */
shw_collective* process_collective_create(int socket, int32_t rank, int32_t size);

#endif

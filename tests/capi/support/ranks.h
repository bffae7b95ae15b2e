/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads as ranks: runs one function per rank, each with its collective of one group. */
#ifndef SHARDWRIGHT_TESTS_CAPI_RANKS_H
#define SHARDWRIGHT_TESTS_CAPI_RANKS_H

#include "check.h"

struct rank {
  int32_t rank;
  int32_t size;
  shw_collective* collective; /* released when the function returns, unless it set this to NULL */
  void* user;
};
typedef void (*rank_function)(struct rank* rank);

/* Returns when all ranks have. `size` is at most 16. */
void run_ranks(int32_t size, rank_function function, void* user);

#endif

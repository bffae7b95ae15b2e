/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread per rank; a check that fails in any of them ends the program. */
#include "ranks.h"

#include <pthread.h>

enum { MOST_RANKS = 16 };

struct started {
  struct rank rank;
  rank_function function;
};

static void* run_rank(void* opaque) {
  struct started* started = opaque;
  started->function(&started->rank);
  shw_collective_release(started->rank.collective);
  return NULL;
}

void run_ranks(int32_t size, rank_function function, void* user) {
  pthread_t threads[MOST_RANKS];
  struct started started[MOST_RANKS];
  shw_error* error = NULL;
  shw_collective_group* group = NULL;
  CHECK(size <= MOST_RANKS);
  CHECK_OK(shw_collective_group_create(size, &group, &error));
  for (int32_t i = 0; i < size; ++i) {
    const struct rank rank = {i, size, NULL, user};
    started[i].rank = rank;
    started[i].function = function;
    CHECK_OK(shw_collective_group_member(group, i, &started[i].rank.collective, &error));
  }
  shw_collective_group_release(group);
  for (int32_t i = 0; i < size; ++i) {
    CHECK(pthread_create(&threads[i], NULL, run_rank, &started[i]) == 0);
  }
  for (int32_t i = 0; i < size; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

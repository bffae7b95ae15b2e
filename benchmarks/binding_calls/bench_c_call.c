/* SPDX-License-Identifier: Apache-2.0
 *
 * Nanoseconds of one getter call through the function table, median of nine loops of a million
 * calls.
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "shardwright/shardwright.h"

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

typedef shw_status (*GetApi)(uint32_t, uint32_t, const shw_api**, shw_error**);

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 1;
  GetApi get_api;
  *(void**)&get_api = dlsym(library, "shw_get_api");
  const shw_api* api = NULL;
  if (get_api == NULL || get_api(SHW_ABI_MAJOR, SHW_ABI_MINOR, &api, NULL) != SHW_OK) return 1;
  shw_state* state = NULL;
  shw_context* context = NULL;
  if (api->context_create(NULL, &context, NULL) != SHW_OK) return 1;
  if (api->state_create(&state, NULL) != SHW_OK) return 1;
  enum { kLoops = 9, kCalls = 1000000 };
  double loops[kLoops];
  uint64_t sum = 0;
  for (int loop = 0; loop < kLoops; ++loop) {
    const double start = now_ns();
    for (int call = 0; call < kCalls; ++call) sum += api->state_tensor_count(state);
    loops[loop] = (now_ns() - start) / kCalls;
  }
  qsort(loops, kLoops, sizeof(*loops), compare);
  if (sum != 0) return 1;
  printf("%.3f\n", loops[kLoops / 2]);
  api->state_release(state);
  api->context_release(context);
  return 0;
}

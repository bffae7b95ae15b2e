/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the library by dlopen, makes a context through the function table, and prints the
 * milliseconds that took.
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

#include "shardwright/shardwright.h"

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

typedef shw_status (*GetApi)(uint32_t, uint32_t, const shw_api**, shw_error**);

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const double start = now_ms();
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  GetApi get_api;
  *(void**)&get_api = dlsym(library, "shw_get_api");
  const shw_api* api = NULL;
  if (get_api == NULL || get_api(SHW_ABI_MAJOR, SHW_ABI_MINOR, &api, NULL) != SHW_OK) return 1;
  shw_context* context = NULL;
  if (api->context_create(NULL, &context, NULL) != SHW_OK) return 1;
  printf("%.4f\n", now_ms() - start);
  api->context_release(context);
  return 0;
}

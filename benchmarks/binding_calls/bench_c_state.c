/* SPDX-License-Identifier: Apache-2.0
 *
 * What the states of the Python contenders cost a host in C. A library, so that it runs in the
 * process of the contender that it is compared with: same heap, same moment.
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "shardwright/shardwright.h"

#define BENCH_API __attribute__((visibility("default")))

enum { kNameBytes = 32 };

typedef shw_status (*GetApi)(uint32_t, uint32_t, const shw_api**, shw_error**);

static const shw_api* api;
static const int64_t kShape[] = {4};
static float memory[4];

/* 0 when the library at `path` is ready. */
BENCH_API int bench_open(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 1;
  GetApi get_api;
  *(void**)&get_api = dlsym(library, "shw_get_api");
  return get_api == NULL || get_api(SHW_ABI_MAJOR, SHW_ABI_MINOR, &api, NULL) != SHW_OK;
}

static void describe(shw_tensor* tensor) {
  api->tensor_init(tensor, sizeof(*tensor));
  tensor->data = memory;
  tensor->device_type = SHW_DEVICE_CPU;
  tensor->dtype = SHW_FLOAT32;
  tensor->ndim = 1;
  tensor->shape = kShape;
}

/* Flat arrays of `count` tensors; they live until the process ends. NULL without memory. */
BENCH_API shw_tensor_batch* bench_describe(uint64_t count) {
  shw_tensor_batch* batch = malloc(sizeof(*batch));
  char* names = malloc(count * kNameBytes);
  uint64_t* ends = malloc((count + 1) * sizeof(*ends));
  shw_tensor* tensors = malloc(count * sizeof(*tensors));
  if (batch == NULL || names == NULL || ends == NULL || tensors == NULL) return NULL;
  ends[0] = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const int size = snprintf(names + ends[i], kNameBytes, "layers.%" PRIu64 ".weight", i);
    ends[i + 1] = ends[i] + (uint64_t)size;
    describe(&tensors[i]);
  }
  api->tensor_batch_init(batch, sizeof(*batch));
  batch->count = count;
  batch->names = names;
  batch->name_offsets = ends;
  batch->tensors = tensors;
  return batch;
}

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* CPU seconds of one state: created, filled by one call, released. Negative when a call failed. */
BENCH_API double bench_state(const shw_tensor_batch* batch) {
  const double start = cpu_seconds();
  shw_state* state = NULL;
  if (api->state_create(&state, NULL) != SHW_OK) return -1;
  const shw_status status = api->state_add_tensors(state, batch, NULL);
  api->state_release(state);
  return status == SHW_OK ? cpu_seconds() - start : -1;
}

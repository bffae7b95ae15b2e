/* SPDX-License-Identifier: Apache-2.0
 *
 * Iterations of units that hold two elements each, on one of two ranks whose transport moves
 * nothing: what remains is what the phases themselves cost a host in C.
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "shardwright/shardwright.h"

#define BENCH_API __attribute__((visibility("default")))
#define RETURN_IF_FAILS(call) \
  if ((call) != SHW_OK) return 1

typedef shw_status (*GetApi)(uint32_t, uint32_t, const shw_api**, shw_error**);

static const shw_api* api;
static shw_hsdp* hsdp;
static shw_hsdp_unit** units;
static uint64_t unit_count;
static float memory[2];
static const int64_t kShape[] = {2};

static shw_tensor two_elements(void) {
  shw_tensor tensor;
  api->tensor_init(&tensor, sizeof(tensor));
  tensor.data = memory;
  tensor.byte_size = sizeof(memory);
  tensor.device_type = SHW_DEVICE_CPU;
  tensor.dtype = SHW_FLOAT32;
  tensor.ndim = 1;
  tensor.shape = kShape;
  return tensor;
}

static int add_unit(uint64_t number) {
  char name[32];
  static const uint64_t ends[] = {0, 6};
  const shw_tensor tensor = two_elements();
  shw_hsdp_param_batch batch;
  api->hsdp_param_batch_init(&batch, sizeof(batch));
  batch.count = 1;
  batch.names = "weight";
  batch.name_offsets = ends;
  batch.tensors = &tensor;
  const int size = snprintf(name, sizeof(name), "layers.%llu", (unsigned long long)number);
  RETURN_IF_FAILS(api->hsdp_unit_create(hsdp, name, (uint64_t)size, NULL, &units[number], NULL));
  RETURN_IF_FAILS(api->hsdp_unit_add_params(units[number], &batch, NULL));
  RETURN_IF_FAILS(api->hsdp_unit_seal(units[number], NULL));
  return 0;
}

static int make_context(void) {
  static const int64_t shape[] = {2};
  shw_layout_spec spec;
  shw_hsdp_options options;
  shw_context* context = NULL;
  shw_communicator* communicator = NULL;
  shw_hsdp_mesh* mesh = NULL;
  api->layout_spec_init(&spec, sizeof(spec));
  spec.mesh_ndim = 1;
  spec.mesh_shape = shape;
  api->hsdp_options_init(&options, sizeof(options));
  RETURN_IF_FAILS(api->context_create(NULL, &context, NULL));
  RETURN_IF_FAILS(api->communicator_create_fake(0, 2, &communicator, NULL));
  RETURN_IF_FAILS(api->hsdp_mesh_create(&spec, 0, &mesh, NULL));
  RETURN_IF_FAILS(
      api->hsdp_mesh_set_communicator(mesh, 0, SHW_HSDP_LANE_GATHER, communicator, NULL));
  options.mesh = mesh;
  RETURN_IF_FAILS(api->hsdp_create(context, &options, &hsdp, NULL));
  return 0;
}

/* 0 when `count` units of the library at `path` are ready; they live until the process ends. */
BENCH_API int bench_open(const char* path, uint64_t count) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 1;
  GetApi get_api;
  *(void**)&get_api = dlsym(library, "shw_get_api");
  RETURN_IF_FAILS(get_api == NULL ? SHW_INTERNAL
                                  : get_api(SHW_ABI_MAJOR, SHW_ABI_MINOR, &api, NULL));
  if (make_context() != 0) return 1;
  units = calloc(count, sizeof(*units));
  if (units == NULL) return 1;
  for (unit_count = 0; unit_count < count; ++unit_count)
    if (add_unit(unit_count) != 0) return 1;
  return 0;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int iterate(void) {
  static const uint64_t first[] = {0};
  const shw_tensor grad = two_elements();
  for (uint64_t i = 0; i < unit_count; ++i) {
    RETURN_IF_FAILS(api->hsdp_unit_pre_forward(units[i], NULL, NULL));
    RETURN_IF_FAILS(api->hsdp_unit_post_forward(units[i], NULL, NULL));
  }
  for (uint64_t i = unit_count; i-- > 0;) {
    RETURN_IF_FAILS(api->hsdp_unit_pre_backward(units[i], NULL));
    RETURN_IF_FAILS(api->hsdp_unit_add_grads(units[i], first, &grad, 1, SHW_HSDP_TAKE, NULL));
    RETURN_IF_FAILS(api->hsdp_unit_post_backward(units[i], NULL));
  }
  RETURN_IF_FAILS(api->hsdp_finalize_backward(hsdp, NULL));
  RETURN_IF_FAILS(api->hsdp_zero_grads(hsdp, NULL));
  return 0;
}

/* Seconds of one iteration, less than 0 when one of its calls failed. */
BENCH_API double bench_iterate(void) {
  const double start = now();
  return iterate() == 0 ? now() - start : -1;
}

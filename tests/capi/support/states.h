/* SPDX-License-Identifier: Apache-2.0
 *
 * Small vocabulary for states: one tensor, one shard, one object per call. Shapes are literal
 * lists. All functions end the test when a step fails that should not. */
#ifndef SHARDWRIGHT_TESTS_CAPI_STATES_H
#define SHARDWRIGHT_TESTS_CAPI_STATES_H

#include "check.h"

#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

/* The extension of that name; the test ends when there is none. */
const shw_megatron_api* megatron(void);

shw_context* make_context(void);
shw_state* make_state(void);

/* Row-major float32 tensor in the caller's memory. */
shw_tensor float_tensor(float* data, const int64_t* shape, int32_t ndim);

/* Adds one whole tensor. */
void add_floats(shw_state* state, const char* name, float* data, const int64_t* shape,
                int32_t ndim);

/* One shard: the box (offsets, sizes) of a tensor with this global shape, row-major in `data`. */
struct shard {
  const char* name;
  float* data;
  const int64_t* global_shape;
  const int64_t* offsets;
  const int64_t* sizes;
  int32_t ndim;
};
shw_status try_add_shard(shw_state* state, const struct shard* shard, shw_error** err);
void add_shard(shw_state* state, const struct shard* shard);

void add_object(shw_state* state, const char* name, const char* content_type, const char* text);
shw_status try_add_one(shw_state* state, const char* name, uint64_t name_size,
                       const shw_tensor* tensor, shw_error** err);

/* Saves on one rank with default options. */
void save_at(shw_context* context, const shw_state* state, const char* path);
/* Opens with default options. */
shw_checkpoint* open_at(shw_context* context, const char* path);
/* Number of a tensor by name. */
uint64_t tensor_number(const shw_checkpoint* checkpoint, const char* name);
/* XXH3 digest of a tensor as text in static memory (8 texts, reused in turn). */
const char* digest_of(const shw_checkpoint* checkpoint, const char* name);

#endif

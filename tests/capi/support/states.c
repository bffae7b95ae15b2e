/* SPDX-License-Identifier: Apache-2.0
 *
 * Every helper is one call for one entry. */
#include "states.h"

const shw_megatron_api* megatron(void) {
  const void* functions = NULL;
  shw_error* error = NULL;
  CHECK_OK(shw_get_extension(SHW_MEGATRON_NAME, SHW_MEGATRON_VERSION, &functions, &error));
  return functions;
}

shw_context* make_context(void) {
  shw_error* error = NULL;
  shw_context* context = NULL;
  shw_context_options options = SHW_CONTEXT_OPTIONS_INIT;
  options.threads = 2;
  CHECK_OK(shw_context_create(&options, &context, &error));
  return context;
}

shw_state* make_state(void) {
  shw_error* error = NULL;
  shw_state* state = NULL;
  CHECK_OK(shw_state_create(&state, &error));
  return state;
}

shw_tensor float_tensor(float* data, const int64_t* shape, int32_t ndim) {
  shw_tensor tensor = SHW_TENSOR_INIT;
  tensor.data = data;
  tensor.device_type = SHW_DEVICE_CPU;
  tensor.dtype = SHW_FLOAT32;
  tensor.shape = shape;
  tensor.ndim = ndim;
  return tensor;
}

shw_status try_add_one(shw_state* state, const char* name, uint64_t name_size,
                       const shw_tensor* tensor, shw_error** err) {
  return shw_state_add_tensor(state, name, name_size, tensor, NULL, NULL, SHW_KIND_AUTO, err);
}

void add_floats(shw_state* state, const char* name, float* data, const int64_t* shape,
                int32_t ndim) {
  shw_error* error = NULL;
  const shw_tensor tensor = float_tensor(data, shape, ndim);
  CHECK_OK(try_add_one(state, name, strlen(name), &tensor, &error));
}

shw_status try_add_shard(shw_state* state, const struct shard* shard, shw_error** err) {
  const shw_tensor tensor = float_tensor(shard->data, shard->sizes, shard->ndim);
  return shw_state_add_tensor(state, shard->name, strlen(shard->name), &tensor, shard->global_shape,
                              shard->offsets, SHW_KIND_AUTO, err);
}

void add_shard(shw_state* state, const struct shard* shard) {
  shw_error* error = NULL;
  CHECK_OK(try_add_shard(state, shard, &error));
}

void add_object(shw_state* state, const char* name, const char* content_type, const char* text) {
  shw_error* error = NULL;
  CHECK_OK(shw_state_add_object(state, name, strlen(name), content_type, text, strlen(text),
                                SHW_KIND_AUTO, &error));
}

void save_at(shw_context* context, const shw_state* state, const char* path) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  CHECK_OK(shw_save(context, state, NULL, path, NULL, NULL, &report, &error));
  shw_report_release(report);
}

shw_checkpoint* open_at(shw_context* context, const char* path) {
  shw_error* error = NULL;
  shw_checkpoint* checkpoint = NULL;
  CHECK_OK(shw_checkpoint_open(context, NULL, path, NULL, &checkpoint, &error));
  return checkpoint;
}

uint64_t tensor_number(const shw_checkpoint* checkpoint, const char* name) {
  shw_error* error = NULL;
  uint64_t index = 0;
  CHECK_OK(shw_checkpoint_find_tensor(checkpoint, name, strlen(name), -1, &index, &error));
  return index;
}

const char* digest_of(const shw_checkpoint* checkpoint, const char* name) {
  static char texts[8][80];
  static int next;
  shw_error* error = NULL;
  shw_buffer* digests = NULL;
  const uint64_t index = tensor_number(checkpoint, name);
  CHECK_OK(shw_checkpoint_digests(checkpoint, &index, 1, SHW_DIGEST_XXH3, &digests, &error));
  char* text = texts[next];
  next = (next + 1) % 8;
  snprintf(text, sizeof(texts[0]), "%s", (const char*)shw_buffer_data(digests));
  shw_buffer_release(digests);
  return text;
}

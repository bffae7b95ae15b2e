/* SPDX-License-Identifier: Apache-2.0
 *
 * One rank of the loop over the C interface. */
#include "loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network.h"

enum { NAME_BYTES = 40, WEIGHT = 0, BIAS = 1 };

/* What one forward leaves for the backward. */
struct pass {
  activations seen[LAYERS + 1]; /* inputs of each layer, then the outputs */
  activations before[LAYERS];   /* what comes out before the activation */
};

static shw_status out_of_memory(shw_error** err) {
  static const char message[] = "no memory for the loop";
  (void)shw_error_create(SHW_RESOURCE_EXHAUSTED, message, sizeof(message) - 1, NULL, 0, NULL, err);
  return SHW_RESOURCE_EXHAUSTED;
}

static shw_tensor floats(float* data, const int64_t* shape, int32_t ndim) {
  shw_tensor tensor = SHW_TENSOR_INIT;
  tensor.data = data;
  tensor.dtype = SHW_FLOAT32;
  tensor.ndim = ndim;
  tensor.shape = shape;
  return tensor;
}

/* A view that must be there. */
static shw_status view(struct loop* loop, int layer, int32_t kind, uint64_t index, shw_tensor* out,
                       shw_error** err) {
  *out = (shw_tensor)SHW_TENSOR_INIT;
  return shw_hsdp_unit_views(loop->units[layer], kind, index, 1, out, err);
}

/* ---- the model ---- */

static shw_status add_params(struct loop* loop, int layer, shw_error** err) {
  float weight[WIDEST * WIDEST], bias[WIDEST];
  const int64_t shape[] = {kWidths[layer + 1], kWidths[layer]};
  char names[2 * NAME_BYTES];
  const int first = snprintf(names, NAME_BYTES, "layers.%d.weight", layer);
  const int second = snprintf(names + first, NAME_BYTES, "layers.%d.bias", layer);
  const uint64_t offsets[] = {0, (uint64_t)first, (uint64_t)(first + second)};
  const shw_tensor tensors[] = {floats(weight, shape, 2), floats(bias, shape, 1)};
  shw_hsdp_param_batch batch = SHW_HSDP_PARAM_BATCH_INIT;
  batch.count = 2;
  batch.names = names;
  batch.name_offsets = offsets;
  batch.tensors = tensors;
  first_weight(layer, weight);
  first_bias(layer, bias);
  RETURN_IF_FAILS(shw_hsdp_unit_add_params(loop->units[layer], &batch, err));
  return shw_hsdp_unit_seal(loop->units[layer], err); /* from here on each rank holds its rows */
}

static shw_status add_momenta(struct loop* loop, int layer, shw_error** err) {
  for (int index = WEIGHT; index <= BIAS; ++index) {
    shw_tensor local;
    RETURN_IF_FAILS(view(loop, layer, SHW_HSDP_VIEW_LOCAL, (uint64_t)index, &local, err));
    /* One more byte: a rank may have no row of a parameter. */
    loop->momenta[2 * layer + index] = calloc(1, local.byte_size + 1);
    if (loop->momenta[2 * layer + index] == NULL) return out_of_memory(err);
  }
  return SHW_OK;
}

shw_status loop_open(struct loop* loop, shw_context* context, shw_hsdp_mesh* mesh, int rank,
                     int32_t shard_axis, int32_t replicate_axis, shw_error** err) {
  shw_hsdp_options options = SHW_HSDP_OPTIONS_INIT;
  memset(loop, 0, sizeof(*loop));
  loop->rank = rank;
  options.mesh = mesh;
  options.shard_axis = shard_axis;
  options.replicate_axis = replicate_axis;
  RETURN_IF_FAILS(shw_hsdp_create(context, &options, &loop->hsdp, err));
  for (int layer = 0; layer < LAYERS; ++layer) {
    char name[NAME_BYTES];
    const int size = snprintf(name, sizeof(name), "layers.%d", layer);
    RETURN_IF_FAILS(
        shw_hsdp_unit_create(loop->hsdp, name, (uint64_t)size, NULL, &loop->units[layer], err));
    RETURN_IF_FAILS(add_params(loop, layer, err));
    RETURN_IF_FAILS(add_momenta(loop, layer, err));
  }
  return SHW_OK;
}

void loop_close(struct loop* loop) {
  for (int n = 0; n < PARAMS; ++n) free(loop->momenta[n]);
  for (int layer = 0; layer < LAYERS; ++layer) shw_hsdp_unit_release(loop->units[layer]);
  shw_hsdp_release(loop->hsdp);
}

/* ---- a step ---- */

static shw_status forward(struct loop* loop, struct pass* pass, shw_error** err) {
  for (int layer = 0; layer < LAYERS; ++layer) {
    shw_tensor weight, bias;
    RETURN_IF_FAILS(shw_hsdp_unit_pre_forward(loop->units[layer], NULL, err));
    RETURN_IF_FAILS(view(loop, layer, SHW_HSDP_VIEW_FULL, WEIGHT, &weight, err));
    RETURN_IF_FAILS(view(loop, layer, SHW_HSDP_VIEW_FULL, BIAS, &bias, err));
    affine(layer, pass->seen[layer], weight.data, bias.data, pass->before[layer]);
    RETURN_IF_FAILS(shw_hsdp_unit_post_forward(loop->units[layer], NULL, err));
    if (layer + 1 < LAYERS) {
      rectify(layer, pass->before[layer], pass->seen[layer + 1]);
    } else {
      memcpy(pass->seen[LAYERS], pass->before[layer], sizeof(activations));
    }
  }
  return SHW_OK;
}

static shw_status backward_layer(struct loop* loop, int layer, const struct pass* pass,
                                 activations dy, shw_error** err) {
  static const uint64_t params[] = {WEIGHT, BIAS};
  float of_weight[WIDEST * WIDEST], of_bias[WIDEST];
  const int64_t shape[] = {kWidths[layer + 1], kWidths[layer]};
  const shw_tensor grads[] = {floats(of_weight, shape, 2), floats(of_bias, shape, 1)};
  activations dx;
  shw_tensor weight;
  if (layer + 1 < LAYERS) rectify_gradient(layer, pass->before[layer], dy);
  RETURN_IF_FAILS(shw_hsdp_unit_pre_backward(loop->units[layer], err));
  RETURN_IF_FAILS(view(loop, layer, SHW_HSDP_VIEW_FULL, WEIGHT, &weight, err));
  weight_gradient(layer, dy, pass->seen[layer], of_weight);
  bias_gradient(layer, dy, of_bias);
  input_gradient(layer, dy, weight.data, dx);
  RETURN_IF_FAILS(shw_hsdp_unit_add_grads(loop->units[layer], params, grads, 2, SHW_HSDP_ADD, err));
  memcpy(dy, dx, sizeof(activations));
  return shw_hsdp_unit_post_backward(loop->units[layer], err); /* travels meanwhile */
}

static shw_status micro_batch(struct loop* loop, int number, shw_error** err) {
  struct pass pass;
  activations dy;
  const int64_t is_last = number + 1 == MICRO_BATCHES;
  RETURN_IF_FAILS(shw_hsdp_set_i64(loop->hsdp, SHW_HSDP_IS_LAST_BACKWARD, is_last, err));
  /* Replicas, where there are some, meet once. */
  RETURN_IF_FAILS(shw_hsdp_set_i64(loop->hsdp, SHW_HSDP_REQUIRES_ALL_REDUCE, is_last, err));
  make_inputs(loop->next_step, number, loop->rank, pass.seen[0]);
  RETURN_IF_FAILS(forward(loop, &pass, err));
  loss_gradient(pass.seen[LAYERS], loop->next_step, number, loop->rank, dy);
  for (int layer = LAYERS - 1; layer >= 0; --layer)
    RETURN_IF_FAILS(backward_layer(loop, layer, &pass, dy, err));
  return shw_hsdp_finalize_backward(loop->hsdp, err);
}

static shw_status descend(struct loop* loop, shw_error** err) {
  for (int n = 0; n < PARAMS; ++n) {
    shw_tensor local, grad;
    RETURN_IF_FAILS(view(loop, n / 2, SHW_HSDP_VIEW_LOCAL, (uint64_t)n % 2, &local, err));
    RETURN_IF_FAILS(view(loop, n / 2, SHW_HSDP_VIEW_GRAD, (uint64_t)n % 2, &grad, err));
    float* parameters = local.data;
    const float* gradients = grad.data;
    float* momenta = loop->momenta[n];
    for (uint64_t i = 0; i < local.byte_size / sizeof(float); ++i) {
      momenta[i] = 0.9F * momenta[i] + gradients[i];
      parameters[i] = parameters[i] - 0.125F * momenta[i];
    }
  }
  RETURN_IF_FAILS(shw_hsdp_step_event(loop->hsdp, 0, err)); /* the shards have changed */
  return shw_hsdp_zero_grads(loop->hsdp, err);
}

shw_status loop_step(struct loop* loop, shw_error** err) {
  for (int number = 0; number < MICRO_BATCHES; ++number)
    RETURN_IF_FAILS(micro_batch(loop, number, err));
  RETURN_IF_FAILS(descend(loop, err));
  ++loop->next_step;
  return SHW_OK;
}

/* ---- what remains ---- */

static shw_status append_whole(struct loop* loop, int layer, char* bytes, uint64_t* size,
                               shw_error** err) {
  RETURN_IF_FAILS(shw_hsdp_unit_unshard(loop->units[layer], NULL, err));
  for (uint64_t index = WEIGHT; index <= BIAS; ++index) {
    shw_tensor full;
    RETURN_IF_FAILS(view(loop, layer, SHW_HSDP_VIEW_FULL, index, &full, err));
    memcpy(bytes + *size, full.data, full.byte_size);
    *size += full.byte_size;
  }
  return shw_hsdp_unit_reshard(loop->units[layer], SHW_HSDP_BACKWARD, err);
}

shw_status loop_digest(struct loop* loop, char digest[DIGEST_CHARS], shw_error** err) {
  char bytes[LAYERS * (WIDEST + 1) * WIDEST * sizeof(float)];
  uint64_t size = 0;
  shw_buffer* made = NULL;
  for (int layer = 0; layer < LAYERS; ++layer)
    RETURN_IF_FAILS(append_whole(loop, layer, bytes, &size, err));
  RETURN_IF_FAILS(shw_content_digest(bytes, size, &made, err));
  const unsigned char* values = shw_buffer_data(made);
  for (int i = 0; i < (DIGEST_CHARS - 1) / 2; ++i)
    (void)snprintf(digest + (size_t)i * 2, 3, "%02x", values[i]);
  shw_buffer_release(made);
  return SHW_OK;
}

static shw_status add_momentum(struct loop* loop, int n, shw_state* state, shw_error** err) {
  char name[NAME_BYTES];
  shw_hsdp_box box = SHW_HSDP_BOX_INIT;
  const int size = snprintf(name, sizeof(name), "momentum.layers.%d.%s", n / 2,
                            n % 2 == WEIGHT ? "weight" : "bias");
  RETURN_IF_FAILS(shw_hsdp_unit_box(loop->units[n / 2], (uint64_t)n % 2, &box, err));
  const shw_tensor tensor = floats(loop->momenta[n], box.sizes, box.ndim);
  return shw_state_add_tensor(state, name, (uint64_t)size, &tensor, box.global_shape, box.offsets,
                              SHW_KIND_AUTO, err);
}

static shw_status fill_state(struct loop* loop, shw_state* state, shw_error** err) {
  char step[24];
  const int size = snprintf(step, sizeof(step), "%lld", (long long)loop->next_step);
  for (int n = 0; n < PARAMS; ++n) RETURN_IF_FAILS(add_momentum(loop, n, state, err));
  RETURN_IF_FAILS(shw_state_add_object(state, "step", 4, "application/json", step, (uint64_t)size,
                                       SHW_KIND_AUTO, err));
  return shw_hsdp_add_to_state(loop->hsdp, "model.", 6, SHW_HSDP_PARAMS, state, err);
}

shw_status loop_state(struct loop* loop, shw_state** state, shw_error** err) {
  RETURN_IF_FAILS(shw_state_create(state, err));
  const shw_status status = fill_state(loop, *state, err);
  if (status != SHW_OK) {
    shw_state_release(*state);
    *state = NULL;
  }
  return status;
}

shw_status loop_loaded(struct loop* loop, const shw_state* state, shw_error** err) {
  uint64_t size = 0;
  char step[24] = "";
  const char* found = shw_state_object_data(state, 0, &size);
  memcpy(step, found, size < sizeof(step) ? size : sizeof(step) - 1);
  loop->next_step = strtoll(step, NULL, 10);
  return shw_hsdp_step_event(loop->hsdp, 0, err); /* the shards have changed */
}

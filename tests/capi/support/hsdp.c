/* SPDX-License-Identifier: Apache-2.0
 *
 * The weight counts up from 1, the bias from 100. */
#include "hsdp.h"

#include "states.h"

shw_hsdp_mesh* make_mesh(int32_t rank, int32_t size, shw_communicator* communicator) {
  shw_layout_spec spec = SHW_LAYOUT_SPEC_INIT;
  const int64_t shape[] = {size};
  shw_hsdp_mesh* mesh = NULL;
  shw_error* error = NULL;
  spec.mesh_ndim = 1;
  spec.mesh_shape = shape;
  CHECK_OK(shw_hsdp_mesh_create(&spec, rank, &mesh, &error));
  if (communicator != NULL)
    CHECK_OK(shw_hsdp_mesh_set_communicator(mesh, 0, SHW_HSDP_LANE_GATHER, communicator, &error));
  return mesh;
}

shw_hsdp_param_batch weight_and_bias(struct trainer* trainer, shw_tensor tensors[PARAMS]) {
  static const int64_t weight_shape[] = {ROWS_OF_WEIGHT, COLUMNS_OF_WEIGHT};
  static const int64_t bias_shape[] = {COLUMNS_OF_WEIGHT};
  static const uint64_t name_offsets[] = {0, 6, 10};
  shw_hsdp_param_batch batch = SHW_HSDP_PARAM_BATCH_INIT;
  for (int i = 0; i < ROWS_OF_WEIGHT * COLUMNS_OF_WEIGHT; ++i) trainer->weight[i] = (float)i + 1;
  for (int i = 0; i < COLUMNS_OF_WEIGHT; ++i) trainer->bias[i] = (float)i + 100;
  tensors[WEIGHT] = float_tensor(trainer->weight, weight_shape, 2);
  tensors[BIAS] = float_tensor(trainer->bias, bias_shape, 1);
  batch.count = PARAMS;
  batch.names = "weightbias";
  batch.name_offsets = name_offsets;
  batch.tensors = tensors;
  return batch;
}

void start_trainer(struct trainer* trainer, int32_t rank, int32_t size,
                   shw_communicator* communicator, const shw_hsdp_unit_options* options) {
  start_trainer_on(NULL, trainer, rank, size, communicator, options);
}

void start_trainer_on(const shw_device* device, struct trainer* trainer, int32_t rank, int32_t size,
                      shw_communicator* communicator, const shw_hsdp_unit_options* options) {
  shw_error* error = NULL;
  shw_tensor tensors[PARAMS];
  shw_hsdp_options chosen = SHW_HSDP_OPTIONS_INIT;
  memset(trainer, 0, sizeof(*trainer));
  trainer->context = make_context();
  trainer->communicator = communicator;
  trainer->mesh = make_mesh(rank, size, communicator);
  chosen.mesh = trainer->mesh;
  chosen.device = device;
  CHECK_OK(shw_hsdp_create(trainer->context, &chosen, &trainer->hsdp, &error));
  CHECK_OK(shw_hsdp_unit_create(trainer->hsdp, "layer", 5, options, &trainer->unit, &error));
  const shw_hsdp_param_batch batch = weight_and_bias(trainer, tensors);
  CHECK_OK(shw_hsdp_unit_add_params(trainer->unit, &batch, &error));
  CHECK_OK(shw_hsdp_unit_seal(trainer->unit, &error));
}

void end_trainer(struct trainer* trainer) {
  shw_hsdp_unit_release(trainer->unit);
  shw_hsdp_release(trainer->hsdp);
  shw_hsdp_mesh_release(trainer->mesh);
  shw_communicator_release(trainer->communicator);
  shw_context_release(trainer->context);
}

void add_constant_grads(struct trainer* trainer, float value) {
  static const int64_t weight_shape[] = {ROWS_OF_WEIGHT, COLUMNS_OF_WEIGHT};
  static const int64_t bias_shape[] = {COLUMNS_OF_WEIGHT};
  static const uint64_t params[] = {BIAS, WEIGHT};
  float values[ROWS_OF_WEIGHT * COLUMNS_OF_WEIGHT];
  shw_error* error = NULL;
  for (int i = 0; i < ROWS_OF_WEIGHT * COLUMNS_OF_WEIGHT; ++i) values[i] = value;
  const shw_tensor grads[] = {float_tensor(values, bias_shape, 1),
                              float_tensor(values, weight_shape, 2)};
  CHECK_OK(shw_hsdp_unit_add_grads(trainer->unit, params, grads, 2, SHW_HSDP_ADD, &error));
}

shw_tensor view_of(struct trainer* trainer, int32_t view, uint64_t index) {
  shw_error* error = NULL;
  shw_tensor tensor = SHW_TENSOR_INIT;
  CHECK_OK(shw_hsdp_unit_views(trainer->unit, view, index, 1, &tensor, &error));
  return tensor;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A small model per rank: one unit of parameters of float32, its mesh and its context. All
 * functions end the test when a step fails that should not. */
#ifndef SHARDWRIGHT_TESTS_CAPI_HSDP_H
#define SHARDWRIGHT_TESTS_CAPI_HSDP_H

#include "check.h"

enum { WEIGHT = 0, BIAS = 1, PARAMS = 2, ROWS_OF_WEIGHT = 5, COLUMNS_OF_WEIGHT = 3 };

struct trainer {
  shw_context* context;
  shw_communicator* communicator; /* NULL where there is one rank */
  shw_hsdp_mesh* mesh;
  shw_hsdp* hsdp;
  shw_hsdp_unit* unit;
  float
      weight[ROWS_OF_WEIGHT * COLUMNS_OF_WEIGHT]; /* whole, as it was before the unit was sealed */
  float bias[COLUMNS_OF_WEIGHT];
};

/* A mesh of one axis; the communicator, which may be NULL, is set for its gathers. */
shw_hsdp_mesh* make_mesh(int32_t rank, int32_t size, shw_communicator* communicator);

/* The unit "layer" with "weight" of 5x3 and "bias" of 3, sealed. `options` NULL = defaults. The
 * trainer takes the communicator over. */
void start_trainer(struct trainer* trainer, int32_t rank, int32_t size,
                   shw_communicator* communicator, const shw_hsdp_unit_options* options);
/* The same in memory of a device, NULL = the host; the trainer keeps no handle of it. */
void start_trainer_on(const shw_device* device, struct trainer* trainer, int32_t rank, int32_t size,
                      shw_communicator* communicator, const shw_hsdp_unit_options* options);
void end_trainer(struct trainer* trainer);

/* Names, tensors and flags of the two parameters, in static memory but for the tensors. */
shw_hsdp_param_batch weight_and_bias(struct trainer* trainer, shw_tensor tensors[PARAMS]);

/* Gradients of the same value everywhere are handed in, for both parameters. */
void add_constant_grads(struct trainer* trainer, float value);

/* A view of the unit that must be there. */
shw_tensor view_of(struct trainer* trainer, int32_t view, uint64_t index);

#endif

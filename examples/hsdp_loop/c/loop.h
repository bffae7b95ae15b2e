/* SPDX-License-Identifier: Apache-2.0
 *
 * One rank of the loop: a small network, a unit per layer, gradients by hand, descent with
 * momentum. Every product and sum is one of float32, in an order that all languages share. */
#ifndef SHARDWRIGHT_EXAMPLES_HSDP_LOOP_H
#define SHARDWRIGHT_EXAMPLES_HSDP_LOOP_H

#include <shardwright/shardwright.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Leaves a function that returns a status. */
#define RETURN_IF_FAILS(call)                            \
  do {                                                   \
    const shw_status status_of_call = (call);            \
    if (status_of_call != SHW_OK) return status_of_call; \
  } while (0)

enum { LAYERS = 3, PARAMS = 2 * LAYERS, DIGEST_CHARS = 33 };

/* Momenta are cut as the parameters are; parameter n is the weight or the bias of layer n / 2. */
struct loop {
  shw_hsdp* hsdp;
  shw_hsdp_unit* units[LAYERS];
  float* momenta[PARAMS];
  int rank;
  int64_t next_step; /* as many were trained */
};

/* Begins at step 0. `replicate_axis` -1 = none. loop_close also after a failure. */
shw_status loop_open(struct loop* loop, shw_context* context, shw_hsdp_mesh* mesh, int rank,
                     int32_t shard_axis, int32_t replicate_axis, shw_error** err);
/* One step, on all ranks. */
shw_status loop_step(struct loop* loop, shw_error** err);
/* Of all parameters, in hexadecimal. On all ranks. */
shw_status loop_digest(struct loop* loop, char digest[DIGEST_CHARS], shw_error** err);
/* A state of parameters, momenta and the step, in memory of the loop. */
shw_status loop_state(struct loop* loop, shw_state** state, shw_error** err);
/* After a load into such a state. */
shw_status loop_loaded(struct loop* loop, const shw_state* state, shw_error** err);
void loop_close(struct loop* loop);

#ifdef __cplusplus
}
#endif

#endif

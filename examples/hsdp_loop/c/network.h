/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers and the arithmetic of the network, of which the library knows nothing. Arrays are
 * row-major. */
#ifndef SHARDWRIGHT_EXAMPLES_HSDP_NETWORK_H
#define SHARDWRIGHT_EXAMPLES_HSDP_NETWORK_H

#include <stdint.h>

enum { SAMPLES = 4, WIDEST = 37, MICRO_BATCHES = 2 };

/* Inputs of layer 0, 1, 2, and outputs. */
extern const int64_t kWidths[4];

/* A row per sample, of which as many values count as the layer is wide. */
typedef float activations[SAMPLES][WIDEST];

void first_weight(int layer, float* weight);
void first_bias(int layer, float* bias);
void make_inputs(int64_t step, int micro_batch, int rank, activations x);
/* Of a quarter of half the squared distance of y from the targets. */
void loss_gradient(const activations y, int64_t step, int micro_batch, int rank, activations dy);

void affine(int layer, const activations x, const float* weight, const float* bias, activations y);
/* y, or zero where it is not above zero. */
void rectify(int layer, const activations y, activations x);
/* dy stays where y is above zero. */
void rectify_gradient(int layer, const activations y, activations dy);
void weight_gradient(int layer, const activations dy, const activations x, float* grad);
void bias_gradient(int layer, const activations dy, float* grad);
void input_gradient(int layer, const activations dy, const float* weight, activations dx);

#endif

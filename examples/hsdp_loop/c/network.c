/* SPDX-License-Identifier: Apache-2.0
 *
 * The network, in loops whose order is that of the other languages. */
#include "network.h"

const int64_t kWidths[4] = {13, 37, 29, 3};

void first_weight(int layer, float* weight) {
  for (int64_t n = 0; n < kWidths[layer + 1] * kWidths[layer]; ++n)
    weight[n] = (float)((n * 37 + layer * 11) % 41 - 20) / 128.0F;
}

void first_bias(int layer, float* bias) {
  for (int64_t n = 0; n < kWidths[layer + 1]; ++n)
    bias[n] = (float)((n * 29 + layer * 7) % 31 - 15) / 256.0F;
}

void make_inputs(int64_t step, int micro_batch, int rank, activations x) {
  for (int b = 0; b < SAMPLES; ++b)
    for (int k = 0; k < kWidths[0]; ++k)
      x[b][k] =
          (float)((step * 31 + micro_batch * 17 + rank * 13 + b * 7 + k * 5) % 23 - 11) / 16.0F;
}

void loss_gradient(const activations y, int64_t step, int micro_batch, int rank, activations dy) {
  for (int b = 0; b < SAMPLES; ++b)
    for (int k = 0; k < kWidths[3]; ++k) {
      const float target =
          (float)((step * 19 + micro_batch * 5 + rank * 3 + b * 11 + k * 13) % 17 - 8) / 16.0F;
      dy[b][k] = (y[b][k] - target) * 0.25F;
    }
}

void affine(int layer, const activations x, const float* weight, const float* bias, activations y) {
  const int64_t inputs = kWidths[layer];
  for (int b = 0; b < SAMPLES; ++b)
    for (int64_t j = 0; j < kWidths[layer + 1]; ++j) {
      float sum = bias[j];
      for (int64_t k = 0; k < inputs; ++k) sum += x[b][k] * weight[j * inputs + k];
      y[b][j] = sum;
    }
}

void rectify(int layer, const activations y, activations x) {
  for (int b = 0; b < SAMPLES; ++b)
    for (int64_t j = 0; j < kWidths[layer + 1]; ++j) x[b][j] = y[b][j] > 0 ? y[b][j] : 0;
}

void rectify_gradient(int layer, const activations y, activations dy) {
  for (int b = 0; b < SAMPLES; ++b)
    for (int64_t j = 0; j < kWidths[layer + 1]; ++j)
      if (!(y[b][j] > 0)) dy[b][j] = 0;
}

void weight_gradient(int layer, const activations dy, const activations x, float* grad) {
  const int64_t inputs = kWidths[layer];
  for (int64_t j = 0; j < kWidths[layer + 1]; ++j)
    for (int64_t k = 0; k < inputs; ++k) {
      float sum = 0;
      for (int b = 0; b < SAMPLES; ++b) sum += dy[b][j] * x[b][k];
      grad[j * inputs + k] = sum;
    }
}

void bias_gradient(int layer, const activations dy, float* grad) {
  for (int64_t j = 0; j < kWidths[layer + 1]; ++j) {
    grad[j] = 0;
    for (int b = 0; b < SAMPLES; ++b) grad[j] += dy[b][j];
  }
}

void input_gradient(int layer, const activations dy, const float* weight, activations dx) {
  const int64_t inputs = kWidths[layer];
  for (int b = 0; b < SAMPLES; ++b)
    for (int64_t k = 0; k < inputs; ++k) {
      float sum = 0;
      for (int64_t j = 0; j < kWidths[layer + 1]; ++j) sum += dy[b][j] * weight[j * inputs + k];
      dx[b][k] = sum;
    }
}

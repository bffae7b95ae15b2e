// SPDX-License-Identifier: Apache-2.0
//
// Mlp: a small network with hand-written gradients, in float32 with one rounding per operation, so
// that the same numbers give the same bits wherever they are computed. Layer i is a weight of
// [out, in] and a bias of [out]; all but the last go through x / (1 + |x|). Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shardwright::test {

using Floats = std::vector<float>;

struct MlpLayer {
  std::span<const float> weight;  // [out, in]
  std::span<const float> bias;    // [out]
  size_t in = 0;
  size_t out = 0;
  bool is_last = false;
};

struct MlpGradients {
  Floats weight;
  Floats bias;
  Floats input;  // for the layer below
};

// input: [batch, in]; gives [batch, out].
Floats mlp_forward(const MlpLayer& layer, const Floats& input);
// Of the outputs of forward and the gradient with respect to them.
MlpGradients mlp_backward(const MlpLayer& layer, const Floats& input, const Floats& output,
                          const Floats& output_gradient);
// Of half the squared distance from zero, per element.
inline const Floats& mlp_loss_gradient(const Floats& output) {
  return output;
}

// Reproducible values in [-1, 1) for a number.
Floats mlp_values(uint64_t number, size_t count);

}  // namespace shardwright::test

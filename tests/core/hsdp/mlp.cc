// SPDX-License-Identifier: Apache-2.0
#include "tests/core/hsdp/mlp.h"

#include <cmath>

namespace shardwright::test {

Floats mlp_forward(const MlpLayer& layer, const Floats& input) {
  const size_t batch = input.size() / layer.in;
  Floats output(batch * layer.out);
  for (size_t row = 0; row < batch; ++row) {
    for (size_t unit = 0; unit < layer.out; ++unit) {
      float sum = layer.bias[unit];
      for (size_t each = 0; each < layer.in; ++each)
        sum += input[row * layer.in + each] * layer.weight[unit * layer.in + each];
      output[row * layer.out + unit] = layer.is_last ? sum : sum / (1.0F + std::fabs(sum));
    }
  }
  return output;
}

MlpGradients mlp_backward(const MlpLayer& layer, const Floats& input, const Floats& output,
                          const Floats& output_gradient) {
  const size_t batch = input.size() / layer.in;
  MlpGradients result{Floats(layer.out * layer.in), Floats(layer.out), Floats(input.size())};
  for (size_t row = 0; row < batch; ++row) {
    for (size_t unit = 0; unit < layer.out; ++unit) {
      float slope = output_gradient[row * layer.out + unit];
      if (!layer.is_last) {
        const float rest = 1.0F - std::fabs(output[row * layer.out + unit]);
        slope *= rest * rest;
      }
      result.bias[unit] += slope;
      for (size_t each = 0; each < layer.in; ++each) {
        result.weight[unit * layer.in + each] += slope * input[row * layer.in + each];
        result.input[row * layer.in + each] += slope * layer.weight[unit * layer.in + each];
      }
    }
  }
  return result;
}

Floats mlp_values(uint64_t number, size_t count) {
  Floats values(count);
  uint64_t state = number * 0x9E3779B97F4A7C15ULL + 0x1234567;
  for (float& each : values) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    each = static_cast<float>(static_cast<int32_t>(state >> 40) - (1 << 23)) / (1 << 23);
  }
  return values;
}

}  // namespace shardwright::test

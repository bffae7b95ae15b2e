// SPDX-License-Identifier: Apache-2.0
//
// One process in place of all ranks: it takes their micro-batches in rank order and adds gradients
// in the order that the library promises. Sums are plain loops of its own.
#include <optional>

#include <gtest/gtest.h>

#include "core/tensor/cast.h"
#include "tests/core/hsdp/training.h"

namespace shardwright::test {

Floats rounded(const Floats& values, DType dtype) {
  if (dtype == DType::kFloat32 || dtype == DType::kInvalid) return values;
  std::vector<std::byte> narrow(values.size() * static_cast<size_t>(dtype_bits(dtype)) / 8);
  Floats result(values.size());
  EXPECT_TRUE(cast_elements(DType::kFloat32, std::as_bytes(std::span(values)), dtype, narrow).ok());
  EXPECT_TRUE(
      cast_elements(dtype, narrow, DType::kFloat32, std::as_writable_bytes(std::span(result)))
          .ok());
  return result;
}

namespace {

void add(const Floats& more, Floats* sum) {
  for (size_t each = 0; each < sum->size(); ++each) (*sum)[each] += more[each];
}

void add_to(const Parameters& more, std::optional<Parameters>* sum) {
  if (!sum->has_value()) {
    *sum = more;
    return;
  }
  for (size_t each = 0; each < more.size(); ++each) add(more[each], &(**sum)[each]);
}

class Oracle {
 public:
  explicit Oracle(const TrainingCase& plan) : plan_(plan), parameters_(first_parameters(plan)) {
    for (const Floats& each : parameters_) momenta_.emplace_back(each.size());
  }

  void run_step(int32_t step) {
    std::optional<Parameters> gradient;  // of the step
    std::vector<std::optional<Parameters>> waiting(replicas());
    std::vector<std::optional<Parameters>> local(static_cast<size_t>(plan_.mesh.world()));
    for (int32_t micro_batch = 0; micro_batch < plan_.micro_batches; ++micro_batch) {
      const bool is_last = micro_batch + 1 == plan_.micro_batches;
      for (int32_t rank = 0; rank < plan_.mesh.world(); ++rank)
        add_to(gradients(step, micro_batch, rank), &local[static_cast<size_t>(rank)]);
      if (plan_.accumulation == Accumulation::kReduceAtTheEnd && !is_last) continue;
      for (size_t replica = 0; replica < replicas(); ++replica)
        add_to(sum_of_shards(replica, local), &waiting[replica]);
      for (auto& each : local) each.reset();
      // Without replicas there is nobody to wait for.
      if (plan_.accumulation == Accumulation::kScatterEach && !is_last && replicas() > 1) continue;
      std::optional<Parameters> total;
      for (auto& each : waiting) {
        add_to(*each, &total);
        each.reset();
      }
      scale(&*total);
      add_to(*total, &gradient);
    }
    optimize(step, *gradient);
  }

  const Parameters& parameters() const { return parameters_; }

 private:
  size_t replicas() const { return static_cast<size_t>(plan_.mesh.replicate); }

  Parameters gradients(int32_t step, int32_t micro_batch, int32_t rank) const {
    std::vector<Floats> inputs = {micro_batch_of(plan_, step, micro_batch, rank)};
    Parameters seen;
    for (const Floats& each : parameters_)
      seen.push_back(rounded(each, plan_.unit.parameter_dtype));
    const auto layer_of = [&](size_t layer) {
      return MlpLayer{seen[2 * layer], seen[2 * layer + 1], plan_.widths[layer],
                      plan_.widths[layer + 1], layer + 1 == plan_.layers()};
    };
    for (size_t layer = 0; layer < plan_.layers(); ++layer)
      inputs.push_back(mlp_forward(layer_of(layer), inputs[layer]));
    Floats slope = mlp_loss_gradient(inputs.back());
    Parameters result(parameters_.size());
    for (size_t layer = plan_.layers(); layer-- > 0;) {
      MlpGradients each = mlp_backward(layer_of(layer), inputs[layer], inputs[layer + 1], slope);
      result[2 * layer] = rounded(each.weight, plan_.unit.parameter_dtype);
      result[2 * layer + 1] = rounded(each.bias, plan_.unit.parameter_dtype);
      slope = std::move(each.input);
    }
    return result;
  }

  Parameters sum_of_shards(size_t replica,
                           const std::vector<std::optional<Parameters>>& local) const {
    std::optional<Parameters> sum;
    const size_t shards = static_cast<size_t>(plan_.mesh.shard);
    for (size_t shard = 0; shard < shards; ++shard) add_to(*local[replica * shards + shard], &sum);
    return *sum;
  }

  void scale(Parameters* gradients) const {
    if (plan_.settings.operation == hsdp::GradientOperation::kSum) return;
    const double factor = plan_.settings.divide_factor > 0
                              ? plan_.settings.divide_factor
                              : static_cast<double>(plan_.mesh.world());
    const float multiplier = static_cast<float>(1.0 / factor);
    if (multiplier == 1.0F) return;
    for (Floats& each : *gradients)
      for (float& value : each) value *= multiplier;
  }

  void optimize(int32_t step, const Parameters& gradients) {
    const bool thawed = plan_.unfreeze_step >= 0 && step >= plan_.unfreeze_step;
    for (size_t each = 0; each < parameters_.size(); ++each) {
      if (!plan_.frozen.empty() && plan_.frozen[each] && !thawed) continue;
      apply_momentum(parameters_[each], gradients[each], momenta_[each]);
    }
  }

  const TrainingCase& plan_;
  Parameters parameters_;
  Parameters momenta_;
};

}  // namespace

Parameters train_alone(const TrainingCase& plan) {
  Oracle oracle(plan);
  for (int32_t step = 0; step < plan.steps; ++step) oracle.run_step(step);
  return oracle.parameters();
}

}  // namespace shardwright::test

// SPDX-License-Identifier: Apache-2.0
#include "tests/core/hsdp/training.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/tensor/cast.h"
#include "tests/core/hsdp/test_memory.h"

namespace shardwright::test {
namespace {

constexpr size_t kBatch = 4;
constexpr float kMomentum = 0.9F;
constexpr float kLearningRate = 0.05F;

std::span<const std::byte> bytes_of(const Floats& values) {
  return std::as_bytes(std::span(values));
}

std::span<float> floats_of(const hsdp::ParameterView& view) {
  return {reinterpret_cast<float*>(seen(view).data()), view.bytes.size() / sizeof(float)};
}

}  // namespace

Parameters first_parameters(const TrainingCase& plan) {
  Parameters result;
  for (size_t layer = 0; layer < plan.layers(); ++layer) {
    result.push_back(mlp_values(100 + layer, plan.widths[layer + 1] * plan.widths[layer]));
    result.push_back(mlp_values(200 + layer, plan.widths[layer + 1]));
    for (Floats* each : {&result[2 * layer], &result[2 * layer + 1]})
      for (float& value : *each) value *= 0.5F;
  }
  return result;
}

Floats micro_batch_of(const TrainingCase& plan, int32_t step, int32_t micro_batch, int32_t rank) {
  const uint64_t number = static_cast<uint64_t>(step * 1000 + micro_batch * 100 + rank);
  return mlp_values(10000 + number, kBatch * plan.widths[0]);
}

void apply_momentum(std::span<float> parameters, std::span<const float> gradients,
                    std::span<float> momenta) {
  for (size_t each = 0; each < parameters.size(); ++each) {
    momenta[each] = kMomentum * momenta[each] + gradients[each];
    parameters[each] -= kLearningRate * momenta[each];
  }
}

Result<std::unique_ptr<RankTrainer>> RankTrainer::create(const TrainingCase& plan, int32_t rank,
                                                         std::shared_ptr<hsdp::HsdpMesh> mesh) {
  auto trainer = std::unique_ptr<RankTrainer>(new RankTrainer(plan, rank));
  hsdp::HsdpOptions options = plan.options;
  options.shard_axis = options_of(plan.mesh).shard_axis;
  options.replicate_axis = options_of(plan.mesh).replicate_axis;
  trainer->device_ = make_test_device(plan.inline_lanes);
  if (plan.wrap_device) trainer->device_ = plan.wrap_device(std::move(trainer->device_));
  SHW_ASSIGN_OR_RETURN(trainer->context_,
                       hsdp::Hsdp::create(options, std::move(mesh), trainer->device_));
  for (size_t layer = 0; layer < plan.layers(); ++layer)
    SHW_RETURN_IF_ERROR(trainer->make_unit(layer));
  return trainer;
}

Status RankTrainer::make_unit(size_t layer) {
  SHW_ASSIGN_OR_RETURN(hsdp::Unit * unit,
                       context_->create_unit(fmt::format("layer {}", layer), plan_.unit));
  const Parameters values = first_parameters(plan_);
  const int64_t in = static_cast<int64_t>(plan_.widths[layer]);
  const int64_t out = static_cast<int64_t>(plan_.widths[layer + 1]);
  std::vector<hsdp::ParameterInput> inputs(2);
  inputs[0].spec.fqn = fmt::format("layer{}.weight", layer);
  inputs[0].spec.shape = {out, in};
  inputs[0].spec.shard_dim = plan_.weight_shard_dim;
  inputs[1].spec.fqn = fmt::format("layer{}.bias", layer);
  inputs[1].spec.shape = {out};
  for (size_t each = 0; each < 2; ++each) {
    inputs[each].spec.replicate =
        plan_.replicate_parameters || (each == 1 && plan_.replicate_biases);
    inputs[each].spec.frozen = !plan_.frozen.empty() && plan_.frozen[2 * layer + each];
    inputs[each].full = bytes_of(values[2 * layer + each]);
  }
  SHW_RETURN_IF_ERROR(unit->add_parameters(std::move(inputs)));
  SHW_RETURN_IF_ERROR(unit->seal());
  SHW_RETURN_IF_ERROR(unit->set_settings(plan_.settings));
  units_.push_back(unit);
  for (size_t each = 0; each < 2; ++each) {
    SHW_ASSIGN_OR_RETURN(const hsdp::ParameterView local, unit->local(each));
    momenta_.emplace_back(local.bytes.size() / sizeof(float));
  }
  return {};
}

Status RankTrainer::set_flags(int32_t micro_batch) {
  const bool is_last = micro_batch + 1 == plan_.micro_batches;
  hsdp::UnitSettings settings = plan_.settings;
  if (plan_.accumulation == Accumulation::kScatterEach) settings.requires_all_reduce = is_last;
  if (plan_.accumulation == Accumulation::kReduceAtTheEnd)
    settings.requires_gradient_sync = is_last;
  for (hsdp::Unit* each : units_) SHW_RETURN_IF_ERROR(each->set_settings(settings));
  context_->set_is_last_backward(is_last || !plan_.one_finalize);
  return {};
}

Result<Floats> RankTrainer::whole(size_t layer, size_t parameter) {
  SHW_ASSIGN_OR_RETURN(const hsdp::ParameterView view, units_[layer]->full(parameter));
  const size_t width = static_cast<size_t>(dtype_bits(view.dtype)) / 8;
  Floats values(view.bytes.size() / width);
  SHW_RETURN_IF_ERROR(cast_elements(view.dtype, seen(view), DType::kFloat32,
                                    std::as_writable_bytes(std::span(values))));
  return values;
}

// A network computes in float32; what it reads was rounded to the compute dtype.
Result<MlpLayer> RankTrainer::layer_of(size_t layer, Parameters* memory) {
  memory->clear();
  for (size_t each = 0; each < 2; ++each) {
    SHW_ASSIGN_OR_RETURN(Floats values, whole(layer, each));
    memory->push_back(std::move(values));
  }
  return MlpLayer{(*memory)[0], (*memory)[1], plan_.widths[layer], plan_.widths[layer + 1],
                  layer + 1 == plan_.layers()};
}

Status RankTrainer::forward(int32_t step, int32_t micro_batch) {
  inputs_.assign(1, micro_batch_of(plan_, step, micro_batch, rank_));
  for (size_t layer = 0; layer < plan_.layers(); ++layer) {
    SHW_RETURN_IF_ERROR(units_[layer]->pre_forward({}));
    Parameters memory;
    SHW_ASSIGN_OR_RETURN(const MlpLayer values, layer_of(layer, &memory));
    inputs_.push_back(mlp_forward(values, inputs_[layer]));
    SHW_RETURN_IF_ERROR(units_[layer]->post_forward({}));
    if (after_forward) SHW_RETURN_IF_ERROR(after_forward(layer));
  }
  return {};
}

Status RankTrainer::move_to_device(hsdp::GradientInput* input) {
  SHW_ASSIGN_OR_RETURN(const std::span<std::byte> there, device_->allocate(input->bytes.size()));
  std::ranges::copy(input->bytes, seen(there).begin());
  written(there);
  input->owner = std::shared_ptr<const void>(
      there.data(), [there, device = device_](const void*) { device->release(there); });
  input->bytes = there;
  input->on_device = true;
  return {};
}

Status RankTrainer::hand_over(size_t layer, const MlpGradients& gradients) {
  std::vector<hsdp::GradientInput> inputs;
  SHW_ASSIGN_OR_RETURN(const hsdp::ParameterView view, units_[layer]->full(0));
  for (size_t each = 0; each < 2; ++each) {
    if (units_[layer]->is_frozen(each)) continue;
    const Floats& values = each == 0 ? gradients.weight : gradients.bias;
    const size_t width = static_cast<size_t>(dtype_bits(view.dtype)) / 8;
    auto memory = std::make_shared<std::vector<std::byte>>(values.size() * width);
    SHW_RETURN_IF_ERROR(cast_elements(DType::kFloat32, bytes_of(values), view.dtype, *memory));
    hsdp::GradientInput input{each, view.dtype, *memory, plan_.take_gradients, nullptr};
    // Copied ones may go right after the call; the vector keeps them until then.
    input.owner = memory;
    if (plan_.gradients_on_device) SHW_RETURN_IF_ERROR(move_to_device(&input));
    inputs.push_back(std::move(input));
  }
  return units_[layer]->add_gradients(inputs);
}

Status RankTrainer::backward(int32_t step) {
  (void)step;
  Floats slope = mlp_loss_gradient(inputs_.back());
  for (size_t layer = plan_.layers(); layer-- > 0;) {
    SHW_RETURN_IF_ERROR(units_[layer]->pre_backward());
    Parameters memory;
    SHW_ASSIGN_OR_RETURN(const MlpLayer values, layer_of(layer, &memory));
    MlpGradients gradients = mlp_backward(values, inputs_[layer], inputs_[layer + 1], slope);
    SHW_RETURN_IF_ERROR(hand_over(layer, gradients));
    SHW_RETURN_IF_ERROR(units_[layer]->post_backward());
    slope = std::move(gradients.input);
  }
  return context_->finalize_backward();
}

Status RankTrainer::optimize() {
  for (size_t layer = 0; layer < plan_.layers(); ++layer) {
    for (size_t each = 0; each < 2; ++each) {
      if (!units_[layer]->has_gradient(each)) continue;
      SHW_ASSIGN_OR_RETURN(const hsdp::ParameterView local, units_[layer]->local(each));
      SHW_ASSIGN_OR_RETURN(const hsdp::ParameterView gradient, units_[layer]->gradient(each));
      if (gradient.dtype != DType::kFloat32 || gradient.shape != local.shape)
        return internal_error("the gradient of a shard is not like the shard");
      apply_momentum(floats_of(local), floats_of(gradient), momenta_[2 * layer + each]);
      written(local);
    }
  }
  SHW_RETURN_IF_ERROR(context_->zero_gradients());
  return context_->step_event();
}

Status RankTrainer::run_step(int32_t step) {
  if (step == plan_.unfreeze_step)
    for (hsdp::Unit* unit : units_)
      for (size_t each = 0; each < 2; ++each) SHW_RETURN_IF_ERROR(unit->set_frozen(each, false));
  for (int32_t micro_batch = 0; micro_batch < plan_.micro_batches; ++micro_batch) {
    SHW_RETURN_IF_ERROR(set_flags(micro_batch));
    SHW_RETURN_IF_ERROR(forward(step, micro_batch));
    SHW_RETURN_IF_ERROR(backward(step));
  }
  return optimize();
}

Result<Parameters> RankTrainer::whole_parameters() {
  Parameters result;
  for (size_t layer = 0; layer < plan_.layers(); ++layer) {
    SHW_ASSIGN_OR_RETURN(const collective::WorkPtr work, units_[layer]->unshard());
    SHW_RETURN_IF_ERROR(work->wait(-1).status());
    for (size_t each = 0; each < 2; ++each) {
      SHW_ASSIGN_OR_RETURN(Floats values, whole(layer, each));
      result.push_back(std::move(values));
    }
    SHW_RETURN_IF_ERROR(units_[layer]->reshard());
  }
  return result;
}

Result<RankTrainer::Snapshot> RankTrainer::snapshot() {
  Snapshot result{{}, momenta_};
  for (hsdp::Unit* unit : units_) {
    for (size_t each = 0; each < 2; ++each) {
      SHW_ASSIGN_OR_RETURN(const hsdp::ParameterView local, unit->local(each));
      const std::span<float> values = floats_of(local);
      result.parts.emplace_back(values.begin(), values.end());
    }
  }
  return result;
}

Status RankTrainer::restore(const Snapshot& from) {
  momenta_ = from.momenta;
  for (size_t each = 0; each < from.parts.size(); ++each) {
    SHW_ASSIGN_OR_RETURN(const hsdp::ParameterView local, units_[each / 2]->local(each % 2));
    std::ranges::copy(from.parts[each], floats_of(local).begin());
    written(local);
  }
  return context_->step_event();
}

Status RankTrainer::expect_shards_of(const Parameters& parameters) {
  for (size_t each = 0; each < parameters.size(); ++each) {
    SHW_ASSIGN_OR_RETURN(const hsdp::ParameterView local, units_[each / 2]->local(each % 2));
    SHW_ASSIGN_OR_RETURN(const Box box, units_[each / 2]->box(each % 2));
    const std::span<const float> values = floats_of(local);
    const size_t columns = each % 2 == 0 ? static_cast<size_t>(box.sizes[1]) : 1;
    const size_t all_columns = each % 2 == 0 ? plan_.widths[each / 2] : 1;
    const size_t first = each % 2 == 0 ? static_cast<size_t>(box.offsets[1]) : 0;
    for (size_t at = 0; at < values.size(); ++at) {
      const size_t row = static_cast<size_t>(box.offsets[0]) + at / columns;
      EXPECT_EQ(values[at], parameters[each][row * all_columns + first + at % columns])
          << "rank " << rank_ << ", parameter " << each << ", element " << at;
    }
  }
  return {};
}

std::vector<Parameters> train(const TrainingCase& plan, const Parameters* expected) {
  RankMeshes meshes(plan.mesh);
  std::vector<Parameters> results(static_cast<size_t>(plan.mesh.world()));
  expect_all_ok(run_ranks(plan.mesh.world(), [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const std::unique_ptr<RankTrainer> trainer,
                         RankTrainer::create(plan, rank, meshes.take(rank)));
    for (int32_t step = 0; step < plan.steps; ++step) SHW_RETURN_IF_ERROR(trainer->run_step(step));
    EXPECT_TRUE(trainer->context().stats().unsharded.empty());
    if (expected != nullptr) SHW_RETURN_IF_ERROR(trainer->expect_shards_of(*expected));
    SHW_ASSIGN_OR_RETURN(results[static_cast<size_t>(rank)], trainer->whole_parameters());
    return {};
  }));
  return results;
}

void expect_trains_like_one_process(const TrainingCase& plan) {
  Parameters expected = train_alone(plan);
  const std::vector<Parameters> ranks = train(plan, &expected);
  for (Floats& each : expected) each = rounded(each, plan.unit.parameter_dtype);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    ASSERT_EQ(ranks[rank].size(), expected.size()) << "rank " << rank;
    for (size_t each = 0; each < expected.size(); ++each) {
      ASSERT_EQ(ranks[rank][each].size(), expected[each].size());
      EXPECT_EQ(std::memcmp(ranks[rank][each].data(), expected[each].data(),
                            expected[each].size() * sizeof(float)),
                0)
          << "rank " << rank << ", parameter " << each;
    }
  }
}

}  // namespace shardwright::test

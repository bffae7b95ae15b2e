// SPDX-License-Identifier: Apache-2.0
//
// Gradients of several micro-batches (T10, T11).
#include <numeric>

#include <gtest/gtest.h>

#include "tests/core/hsdp/test_memory.h"
#include "tests/core/hsdp/training.h"

namespace shardwright::test {
namespace {

constexpr Accumulation kFlavours[] = {Accumulation::kReduceEach, Accumulation::kScatterEach,
                                      Accumulation::kReduceAtTheEnd};

TEST(AccumulatedTraining, T10EachFlavourHasTheBitsOfItsSums) {
  for (const Accumulation flavour : kFlavours) {
    for (const int32_t replicate : {1, 2}) {
      for (const bool reshards : {true, false}) {
        TrainingCase plan;
        plan.mesh = {replicate, 2};
        plan.micro_batches = 3;
        plan.steps = 5;
        plan.accumulation = flavour;
        plan.settings.reshard_after_backward = reshards;
        SCOPED_TRACE(testing::Message() << static_cast<int>(flavour) << replicate << reshards);
        expect_trains_like_one_process(plan);
      }
    }
  }
}

TEST(AccumulatedTraining, T10GradientsOfAnotherDtypeThanTheirSumAreNotLost) {
  for (const Accumulation flavour : kFlavours) {
    for (const bool take : {false, true}) {
      TrainingCase plan;
      plan.mesh = {2, 2};
      plan.micro_batches = 3;
      plan.steps = 5;
      plan.accumulation = flavour;
      plan.take_gradients = take;
      plan.unit.parameter_dtype = DType::kBfloat16;
      plan.unit.reduce_dtype = DType::kFloat32;
      SCOPED_TRACE(testing::Message() << static_cast<int>(flavour) << take);
      expect_trains_like_one_process(plan);
    }
  }
}

// A parameter of four elements and a gradient that holds rank + 1 everywhere.
Status add_and_reduce(hsdp::Unit& unit, float value) {
  SHW_RETURN_IF_ERROR(unit.pre_forward({}));
  SHW_RETURN_IF_ERROR(unit.post_forward({}));
  SHW_RETURN_IF_ERROR(unit.pre_backward());
  const Floats gradient(4, value);
  const hsdp::GradientInput input{0, DType::kFloat32, std::as_bytes(std::span(gradient))};
  SHW_RETURN_IF_ERROR(unit.add_gradients(std::span(&input, 1)));
  return unit.post_backward();
}

TEST(AccumulatedTraining, T11NoMicroBatchIsLostBetweenTheReplicas) {
  const MeshShape shape{2, 2};
  RankMeshes meshes(shape);
  std::vector<Floats> gradients(4);
  expect_all_ok(run_ranks(4, [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(
        const auto context,
        hsdp::Hsdp::create(options_of(shape), meshes.take(rank), make_test_device(false)));
    SHW_ASSIGN_OR_RETURN(hsdp::Unit * unit, context->create_unit("one", {}));
    std::vector<hsdp::ParameterInput> inputs(1);
    inputs[0].spec.fqn = "weight";
    inputs[0].spec.shape = {4};
    SHW_RETURN_IF_ERROR(unit->add_parameters(std::move(inputs)));
    SHW_RETURN_IF_ERROR(unit->seal());
    hsdp::UnitSettings settings;
    settings.operation = hsdp::GradientOperation::kSum;
    settings.requires_all_reduce = false;
    SHW_RETURN_IF_ERROR(unit->set_settings(settings));
    SHW_RETURN_IF_ERROR(add_and_reduce(*unit, static_cast<float>(rank + 1)));
    SHW_RETURN_IF_ERROR(context->finalize_backward());
    EXPECT_EQ(unit->gradient_state(), hsdp::GradientState::kPartial);
    EXPECT_FALSE(context->step_event().ok());
    settings.requires_all_reduce = true;
    SHW_RETURN_IF_ERROR(unit->set_settings(settings));
    SHW_RETURN_IF_ERROR(add_and_reduce(*unit, static_cast<float>(rank + 1)));
    SHW_RETURN_IF_ERROR(context->finalize_backward());
    EXPECT_EQ(unit->gradient_state(), hsdp::GradientState::kReady);
    SHW_ASSIGN_OR_RETURN(const hsdp::ParameterView view, unit->gradient(0));
    const float* values = seen_floats(view.bytes);
    gradients[static_cast<size_t>(rank)].assign(values, values + view.bytes.size() / 4);
    return context->step_event();
  }));
  EXPECT_EQ(gradients, std::vector<Floats>(4, Floats(2, 20.0F)));
}

}  // namespace
}  // namespace shardwright::test

// SPDX-License-Identifier: Apache-2.0
//
// Dtypes, factors, transports with sums of their own, and parameters that are not used as usual
// (T2, T9, T16 to T20).
#include <cmath>

#include <gtest/gtest.h>

#include "tests/core/hsdp/test_memory.h"
#include "tests/core/hsdp/training.h"
#include "tests/core/hsdp/wrapped_communicator.h"
#include "tests/support/expect_failure.h"

namespace shardwright::test {
namespace {

TrainingCase sharded_over(int32_t world) {
  TrainingCase plan;
  plan.mesh.shard = world;
  plan.steps = 8;
  return plan;
}

void expect_close(const Parameters& found, const Parameters& expected, float tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t each = 0; each < found.size(); ++each) {
    for (size_t element = 0; element < found[each].size(); ++element) {
      const float allowed = tolerance * std::max(1.0F, std::fabs(expected[each][element]));
      ASSERT_NEAR(found[each][element], expected[each][element], allowed)
          << "parameter " << each << ", element " << element;
    }
  }
}

class EndedWork final : public collective::Work {
 public:
  Result<bool> wait(int64_t) override { return true; }
  Result<bool> test() override { return true; }
};

// Adds parts beginning with that of its own rank, as rings do. float32.
class RingSums final : public collective::Communicator {
 public:
  explicit RingSums(collective::CommunicatorPtr inner) : inner_(std::move(inner)) {}
  int32_t rank() const override { return inner_->rank(); }
  int32_t size() const override { return inner_->size(); }
  std::string_view name() const override { return "ring"; }
  uint64_t capabilities() const override {
    return inner_->capabilities() & ~uint64_t{collective::kOrderedSum};
  }
  Result<collective::WorkPtr> all_gather(const collective::CommunicatorCall& call,
                                         std::span<const std::byte> in,
                                         std::span<std::byte> out) override {
    return inner_->all_gather(call, in, out);
  }
  Result<collective::WorkPtr> all_to_all(const collective::CommunicatorCall& call,
                                         std::span<const std::byte> in,
                                         std::span<std::byte> out) override {
    return inner_->all_to_all(call, in, out);
  }
  Result<collective::WorkPtr> reduce_scatter(const collective::CommunicatorCall& call,
                                             std::span<const std::byte> in,
                                             std::span<std::byte> out) override {
    Floats parts(in.size() / sizeof(float));
    SHW_ASSIGN_OR_RETURN(const collective::WorkPtr work,
                         inner_->all_to_all(call, in, std::as_writable_bytes(std::span(parts))));
    SHW_RETURN_IF_ERROR(work->wait(-1).status());
    float* sums = reinterpret_cast<float*>(out.data());
    const size_t world = static_cast<size_t>(size());
    for (size_t each = 0; each < call.count; ++each) {
      sums[each] = 0;
      for (size_t step = 0; step < world; ++step)
        sums[each] += parts[(static_cast<size_t>(rank()) + step) % world * call.count + each];
    }
    return collective::WorkPtr(std::make_unique<EndedWork>());
  }
  void abort(const Status& cause) noexcept override { inner_->abort(cause); }

 private:
  collective::CommunicatorPtr inner_;
};

TEST(Policies, T2SumsInTheOrderOfTheTransportAreEqualForTwoRanksAndCloseBeyond) {
  for (const int32_t world : {2, 4}) {
    TrainingCase plan = sharded_over(world);
    plan.options.unordered = true;
    plan.mesh.wrap = [](collective::CommunicatorPtr inner, int32_t,
                        int32_t) -> collective::CommunicatorPtr {
      return std::make_shared<RingSums>(std::move(inner));
    };
    if (world == 2) {
      expect_trains_like_one_process(plan);
    } else {
      for (const Parameters& each : train(plan)) expect_close(each, train_alone(plan), 1e-5F);
    }
  }
}

TEST(Policies, T2ATransportWithoutOrderedSumsMovesPartsInstead) {
  TrainingCase plan = sharded_over(4);
  plan.mesh.wrap = [](collective::CommunicatorPtr inner, int32_t,
                      int32_t) -> collective::CommunicatorPtr {
    return std::make_shared<RingSums>(std::move(inner));
  };
  for (const int32_t lanes : {0, 2}) {
    plan.options.lanes = lanes;
    expect_trains_like_one_process(plan);
  }
}

TEST(Policies, T2ReplicasNeedATransportThatSumsInOrder) {
  MeshShape shape{2, 1};
  shape.wrap = [](collective::CommunicatorPtr inner, int32_t,
                  int32_t) -> collective::CommunicatorPtr {
    return std::make_shared<RingSums>(std::move(inner));
  };
  RankMeshes meshes(shape);
  EXPECT_FAILURE(
      hsdp::Hsdp::create(options_of(shape), meshes.take(0), make_test_device(false)).status(),
      StatusCode::kFailedPrecondition, "'ring'", "unordered");
}

TEST(Policies, T2ReplicatedParametersNeedOneToo) {
  TrainingCase plan = sharded_over(2);
  plan.replicate_biases = true;
  plan.mesh.wrap = [](collective::CommunicatorPtr inner, int32_t,
                      int32_t) -> collective::CommunicatorPtr {
    return std::make_shared<RingSums>(std::move(inner));
  };
  RankMeshes meshes(plan.mesh);
  for (const Status& each : run_ranks(2, [&](int32_t rank) {
         return RankTrainer::create(plan, rank, meshes.take(rank)).status();
       }))
    EXPECT_FAILURE(each, StatusCode::kFailedPrecondition, "'layer 0'", "'ring'", "unordered");
}

TEST(Policies, T9ParametersOfFewBitsAreSummedInManyWithTheSameBits) {
  for (const DType narrow : {DType::kBfloat16, DType::kFloat16}) {
    for (const DType reduce : {DType::kFloat32, DType::kFloat64, DType::kInvalid}) {
      TrainingCase plan = sharded_over(2);
      plan.unit.parameter_dtype = narrow;
      plan.unit.reduce_dtype = reduce;
      SCOPED_TRACE(dtype_name(narrow));
      expect_trains_like_one_process(plan);
    }
  }
}

TEST(Policies, T9SumsOfFewBitsAreCloseAndRepeat) {
  for (const DType reduce : {DType::kBfloat16, DType::kFloat16}) {
    TrainingCase plan = sharded_over(4);
    plan.unit.reduce_dtype = reduce;
    const std::vector<Parameters> once = train(plan);
    EXPECT_EQ(once, train(plan));
    for (const Parameters& each : once) expect_close(each, train_alone(plan), 2e-2F);
  }
}

TEST(Policies, T16ReplicatedParametersBesideShardedOnesHaveTheSameBits) {
  for (const int32_t replicate : {1, 2}) {
    TrainingCase plan = sharded_over(2);
    plan.mesh.replicate = replicate;
    plan.replicate_biases = true;
    expect_trains_like_one_process(plan);
    plan.unit.parameter_dtype = DType::kBfloat16;
    expect_trains_like_one_process(plan);
  }
}

TEST(Policies, T20FactorsOfTheHostDivideTheSum) {
  for (const double factor : {1.0, 4.0, 3.0, 7.0}) {
    TrainingCase plan = sharded_over(4);
    plan.settings.divide_factor = factor;
    SCOPED_TRACE(factor);
    expect_trains_like_one_process(plan);
  }
  TrainingCase plan = sharded_over(3);
  plan.settings.operation = hsdp::GradientOperation::kSum;
  expect_trains_like_one_process(plan);
}

// Units of one weight of four elements, on two ranks.
class TwoRanks {
 public:
  static Result<std::unique_ptr<TwoRanks>> create(RankMeshes* meshes, int32_t rank, size_t units) {
    auto result = std::make_unique<TwoRanks>();
    SHW_ASSIGN_OR_RETURN(result->context, hsdp::Hsdp::create(options_of({1, 2}), meshes->take(rank),
                                                             make_test_device(false)));
    for (size_t each = 0; each < units; ++each) {
      const std::string name = "unit" + std::to_string(each);
      SHW_ASSIGN_OR_RETURN(hsdp::Unit * unit, result->context->create_unit(name, {}));
      std::vector<hsdp::ParameterInput> inputs(1);
      inputs[0].spec.fqn = name + ".weight";
      inputs[0].spec.shape = {4};
      SHW_RETURN_IF_ERROR(unit->add_parameters(std::move(inputs)));
      SHW_RETURN_IF_ERROR(unit->seal());
    }
    return result;
  }

  hsdp::Unit& unit(size_t number) { return *context->units()[number]; }
  Status forward(size_t number) {
    SHW_RETURN_IF_ERROR(unit(number).pre_forward({}));
    return unit(number).post_forward({});
  }
  // Without a gradient where value is NaN.
  Status backward(size_t number, float value) {
    SHW_RETURN_IF_ERROR(unit(number).pre_backward());
    const Floats gradient(4, value);
    const hsdp::GradientInput input{0, DType::kFloat32, std::as_bytes(std::span(gradient))};
    if (!std::isnan(value)) SHW_RETURN_IF_ERROR(unit(number).add_gradients(std::span(&input, 1)));
    return unit(number).post_backward();
  }
  // The first element of this rank's part; NaN where there is no gradient.
  float gradient(size_t number) {
    if (!unit(number).has_gradient(0)) return std::nanf("");
    return *seen_floats(unit(number).gradient(0).value().bytes);
  }

  std::unique_ptr<hsdp::Hsdp> context;
};

void on_two_ranks(size_t units, const std::function<Status(TwoRanks&, int32_t)>& body) {
  RankMeshes meshes({1, 2});
  expect_all_ok(run_ranks(2, [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto ranks, TwoRanks::create(&meshes, rank, units));
    return body(*ranks, rank);
  }));
}

TEST(Policies, T17AUnitThatNeverRanHasNoGradientAndOneThatOnlyRanForwardHasZeros) {
  on_two_ranks(3, [](TwoRanks& ranks, int32_t rank) -> Status {
    SHW_RETURN_IF_ERROR(ranks.forward(0));
    SHW_RETURN_IF_ERROR(ranks.forward(1));
    SHW_RETURN_IF_ERROR(ranks.backward(0, static_cast<float>(rank + 1)));
    SHW_RETURN_IF_ERROR(ranks.context->finalize_backward());
    EXPECT_EQ(ranks.gradient(0), 1.5F);
    EXPECT_EQ(ranks.gradient(1), 0.0F);
    EXPECT_TRUE(std::isnan(ranks.gradient(2)));
    EXPECT_TRUE(ranks.context->stats().unsharded.empty());
    return {};
  });
}

TEST(Policies, T18TwoForwardsBeforeTwoBackwards) {
  on_two_ranks(2, [](TwoRanks& ranks, int32_t rank) -> Status {
    for (int pass = 0; pass < 2; ++pass)
      for (const size_t each : {0, 1}) SHW_RETURN_IF_ERROR(ranks.forward(each));
    for (int pass = 0; pass < 2; ++pass)
      for (const size_t each : {1, 0})
        SHW_RETURN_IF_ERROR(ranks.backward(each, static_cast<float>(rank + pass * 10)));
    SHW_RETURN_IF_ERROR(ranks.context->finalize_backward());
    EXPECT_EQ(ranks.gradient(0), 0.5F + 10.5F);
    EXPECT_EQ(ranks.gradient(1), 0.5F + 10.5F);
    return {};
  });
}

TEST(Policies, T18AUnitThatIsCalledTwiceSumsBothUses) {
  on_two_ranks(1, [](TwoRanks& ranks, int32_t rank) -> Status {
    SHW_RETURN_IF_ERROR(ranks.forward(0));
    SHW_RETURN_IF_ERROR(ranks.forward(0));
    const Floats gradient(4, static_cast<float>(rank + 1));
    const hsdp::GradientInput input{0, DType::kFloat32, std::as_bytes(std::span(gradient))};
    SHW_RETURN_IF_ERROR(ranks.unit(0).pre_backward());
    SHW_RETURN_IF_ERROR(ranks.unit(0).add_gradients(std::span(&input, 1)));
    SHW_RETURN_IF_ERROR(ranks.unit(0).add_gradients(std::span(&input, 1)));
    SHW_RETURN_IF_ERROR(ranks.unit(0).post_backward());
    SHW_RETURN_IF_ERROR(ranks.unit(0).post_backward());  // once more does nothing
    SHW_RETURN_IF_ERROR(ranks.context->finalize_backward());
    EXPECT_EQ(ranks.gradient(0), 3.0F);
    return {};
  });
}

TEST(Policies, T18ForwardInsideOfBackwardNeitherReshardsNorCounts) {
  on_two_ranks(2, [](TwoRanks& ranks, int32_t) -> Status {
    SHW_RETURN_IF_ERROR(ranks.forward(0));
    SHW_RETURN_IF_ERROR(ranks.forward(1));
    SHW_RETURN_IF_ERROR(ranks.unit(1).pre_forward({.recompute = true}));
    EXPECT_EQ(ranks.unit(1).state(), hsdp::UnitState::kUnsharded);
    SHW_RETURN_IF_ERROR(ranks.unit(1).post_forward({.recompute = true}));
    EXPECT_EQ(ranks.unit(1).state(), hsdp::UnitState::kUnsharded);
    SHW_RETURN_IF_ERROR(ranks.backward(1, 1.0F));
    SHW_RETURN_IF_ERROR(ranks.backward(0, 1.0F));
    return ranks.context->finalize_backward();
  });
}

TEST(Policies, T19AGradientThatOneRankLacksIsZeroThere) {
  on_two_ranks(1, [](TwoRanks& ranks, int32_t rank) -> Status {
    SHW_RETURN_IF_ERROR(ranks.forward(0));
    SHW_RETURN_IF_ERROR(ranks.backward(0, rank == 0 ? 4.0F : std::nanf("")));
    SHW_RETURN_IF_ERROR(ranks.context->finalize_backward());
    EXPECT_EQ(ranks.gradient(0), 2.0F);
    return {};
  });
}

TEST(Policies, T19RanksThatSkipDifferentParametersAreToldInsteadOfHanging) {
  RankMeshes meshes({1, 2});
  const std::vector<Status> outcomes = run_ranks(2, [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto ranks, TwoRanks::create(&meshes, rank, 2));
    hsdp::UnitSettings settings;
    settings.unused = hsdp::UnusedPolicy::kSkip;
    for (const size_t each : {0, 1}) SHW_RETURN_IF_ERROR(ranks->unit(each).set_settings(settings));
    for (const size_t each : {0, 1}) SHW_RETURN_IF_ERROR(ranks->forward(each));
    SHW_RETURN_IF_ERROR(ranks->backward(1, rank == 0 ? 1.0F : std::nanf("")));
    SHW_RETURN_IF_ERROR(ranks->backward(0, 1.0F));
    return ranks->context->finalize_backward();
  });
  for (const Status& each : outcomes) EXPECT_FAILURE(each, StatusCode::kAborted, "unit");
}

TEST(Policies, T19ParametersThatAllRanksSkipHaveNoGradient) {
  on_two_ranks(2, [](TwoRanks& ranks, int32_t) -> Status {
    hsdp::UnitSettings settings;
    settings.unused = hsdp::UnusedPolicy::kSkip;
    for (const size_t each : {0, 1}) SHW_RETURN_IF_ERROR(ranks.unit(each).set_settings(settings));
    for (const size_t each : {0, 1}) SHW_RETURN_IF_ERROR(ranks.forward(each));
    SHW_RETURN_IF_ERROR(ranks.backward(1, std::nanf("")));
    SHW_RETURN_IF_ERROR(ranks.backward(0, 1.0F));
    SHW_RETURN_IF_ERROR(ranks.context->finalize_backward());
    EXPECT_EQ(ranks.gradient(0), 1.0F);
    EXPECT_TRUE(std::isnan(ranks.gradient(1)));
    return {};
  });
}

}  // namespace
}  // namespace shardwright::test

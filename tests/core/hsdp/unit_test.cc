// SPDX-License-Identifier: Apache-2.0
//
// One unit on one rank or two: what it takes, what it refuses, what it shows.
#include "core/hsdp/unit.h"

#include <array>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/core/hsdp/mlp.h"
#include "tests/core/hsdp/rank_threads.h"
#include "tests/support/expect_failure.h"

namespace shardwright::test {
namespace {

using hsdp::UnitState;

hsdp::ParameterInput parameter(std::string fqn, Dims shape) {
  hsdp::ParameterInput input;
  input.spec.fqn = std::move(fqn);
  input.spec.shape = std::move(shape);
  return input;
}

Result<std::unique_ptr<hsdp::Hsdp>> context_of(RankMeshes* meshes, const MeshShape& shape,
                                               int32_t rank) {
  return hsdp::Hsdp::create(options_of(shape), meshes->take(rank),
                            device::make_host_lane_device(false));
}

// A context of one rank with one unit of a 4 x 2 weight.
class OneRank : public testing::Test {
 protected:
  OneRank() : meshes_(MeshShape{}) {
    context_ = context_of(&meshes_, MeshShape{}, 0).value();
    unit_ = context_->create_unit("layer", {}).value();
  }
  void seal() {
    EXPECT_TRUE(unit_->add_parameters({parameter("weight", {4, 2})}).ok());
    const Status sealed = unit_->seal();
    EXPECT_TRUE(sealed.ok()) << sealed.to_string();
  }

  RankMeshes meshes_;
  std::unique_ptr<hsdp::Hsdp> context_;
  hsdp::Unit* unit_ = nullptr;
};

TEST_F(OneRank, NothingIsLegalBeforeASeal) {
  EXPECT_FAILURE(unit_->pre_forward({}), StatusCode::kFailedPrecondition, "'layer'", "sealed");
  EXPECT_FAILURE(unit_->local(0).status(), StatusCode::kFailedPrecondition, "sealed");
  EXPECT_FAILURE(unit_->reshard(), StatusCode::kFailedPrecondition, "sealed");
}

TEST_F(OneRank, ASealedUnitTakesNoParameters) {
  seal();
  EXPECT_FAILURE(unit_->add_parameters({parameter("more", {2})}), StatusCode::kFailedPrecondition,
                 "sealed");
  EXPECT_FAILURE(unit_->seal(), StatusCode::kFailedPrecondition, "already");
}

TEST_F(OneRank, ATensorOfAnotherSizeIsRefused) {
  const Floats values(7);
  hsdp::ParameterInput input = parameter("weight", {4, 2});
  input.full = std::as_bytes(std::span(values));
  EXPECT_FAILURE(unit_->add_parameters({input}), StatusCode::kInvalidArgument, "'weight'", "32",
                 "28");
}

TEST_F(OneRank, WholeParametersAreThereWhileUnsharded) {
  seal();
  EXPECT_FAILURE(unit_->full(0).status(), StatusCode::kFailedPrecondition, "SHARDED", "UNSHARDED");
  ASSERT_TRUE(unit_->pre_forward({}).ok());
  EXPECT_EQ(unit_->state(), UnitState::kUnsharded);
  EXPECT_EQ(unit_->full(0).value().shape, (Dims{4, 2}));
  EXPECT_FAILURE(unit_->full(1).status(), StatusCode::kOutOfRange, "1");
}

TEST_F(OneRank, GradientsComeOnlyWhileUnsharded) {
  seal();
  const Floats values(8, 1.0F);
  const hsdp::GradientInput input{0, DType::kFloat32, std::as_bytes(std::span(values))};
  EXPECT_FAILURE(unit_->add_gradients(std::span(&input, 1)), StatusCode::kFailedPrecondition,
                 "SHARDED", "UNSHARDED");
  ASSERT_TRUE(unit_->pre_backward().ok());
  EXPECT_TRUE(unit_->add_gradients(std::span(&input, 1)).ok());
  EXPECT_EQ(unit_->gradient_state(), hsdp::GradientState::kLocal);
  hsdp::GradientInput wrong = input;
  wrong.bytes = wrong.bytes.first(4);
  EXPECT_FAILURE(unit_->add_gradients(std::span(&wrong, 1)), StatusCode::kInvalidArgument,
                 "'weight'", "4", "32");
  wrong = input;
  wrong.dtype = DType::kInt32;
  EXPECT_FAILURE(unit_->add_gradients(std::span(&wrong, 1)), StatusCode::kInvalidArgument, "int32");
}

TEST_F(OneRank, AFrozenParameterTakesNoGradient) {
  seal();
  ASSERT_TRUE(unit_->set_frozen(0, true).ok());
  ASSERT_TRUE(unit_->pre_forward({}).ok());
  const Floats values(8, 1.0F);
  const hsdp::GradientInput input{0, DType::kFloat32, std::as_bytes(std::span(values))};
  EXPECT_FAILURE(unit_->add_gradients(std::span(&input, 1)), StatusCode::kInvalidArgument,
                 "frozen");
}

TEST_F(OneRank, SettingsThatAreNoneAreRefused) {
  seal();
  hsdp::UnitSettings settings;
  settings.divide_factor = -1;
  EXPECT_FAILURE(unit_->set_settings(settings), StatusCode::kInvalidArgument, "divide_factor");
  settings = {};
  settings.reshard_after_forward = hsdp::ReshardPolicy::kSecondary;
  settings.secondary_size = 2;
  EXPECT_FAILURE(unit_->set_settings(settings), StatusCode::kInvalidArgument, "secondary_size");
}

TEST_F(OneRank, OptionsThatAreNoneAreRefused) {
  RankMeshes meshes{MeshShape{}};
  const std::shared_ptr<hsdp::HsdpMesh> mesh = meshes.take(0);
  const auto create = [&](const hsdp::HsdpOptions& options) {
    return hsdp::Hsdp::create(options, mesh, device::make_host_lane_device(false)).status();
  };
  hsdp::HsdpOptions options;
  options.shard_axis = 2;
  EXPECT_FAILURE(create(options), StatusCode::kInvalidArgument, "shard axis 2");
  options = {};
  options.replicate_axis = 0;
  EXPECT_FAILURE(create(options), StatusCode::kInvalidArgument, "both");
  options = {};
  options.lanes = 4;
  EXPECT_FAILURE(create(options), StatusCode::kInvalidArgument, "lanes");
  options = {};
  options.max_inflight_reduce = 0;
  EXPECT_FAILURE(create(options), StatusCode::kInvalidArgument, "max_inflight_reduce");
}

TEST(Units, LayoutsThatDifferAreRefusedOnAllRanksOfTheMesh) {
  for (const int32_t odd_rank : {0, 1, 2, 3}) {
    const MeshShape shape{2, 2};
    RankMeshes meshes(shape);
    const std::vector<Status> outcomes = run_ranks(4, [&](int32_t rank) -> Status {
      SHW_ASSIGN_OR_RETURN(const auto context, context_of(&meshes, shape, rank));
      SHW_ASSIGN_OR_RETURN(hsdp::Unit * unit, context->create_unit("layer", {}));
      const int64_t rows = rank == odd_rank ? 5 : 6;
      SHW_RETURN_IF_ERROR(unit->add_parameters({parameter("weight", {rows, 2})}));
      return unit->seal();
    });
    for (const Status& each : outcomes)
      EXPECT_FAILURE(each, StatusCode::kInvalidArgument, "'layer'", "rank");
    if (odd_rank > 0) {
      EXPECT_EQ(outcomes[0].detail("rank"), fmt::to_string(odd_rank));
    }
  }
}

TEST(Units, ARankThatCannotLayAUnitOutTellsTheOthers) {
  const MeshShape shape{1, 2};
  RankMeshes meshes(shape);
  const std::vector<Status> outcomes = run_ranks(2, [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto context, context_of(&meshes, shape, rank));
    SHW_ASSIGN_OR_RETURN(hsdp::Unit * unit, context->create_unit("layer", {}));
    hsdp::ParameterInput input = parameter("weight", {4, 3});
    if (rank == 1) input.spec.shard_dim = 1;
    SHW_RETURN_IF_ERROR(unit->add_parameters({input}));
    return unit->seal();
  });
  EXPECT_FAILURE(outcomes[0], StatusCode::kInvalidArgument, "'layer'", "rank 1");
  EXPECT_FAILURE(outcomes[1], StatusCode::kInvalidArgument, "weight");
}

TEST(Units, AUnitWhoseSealFailedDoesNotStopTheOthers) {
  const MeshShape shape{1, 2};
  RankMeshes meshes(shape);
  expect_all_ok(run_ranks(2, [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto context, context_of(&meshes, shape, rank));
    SHW_ASSIGN_OR_RETURN(hsdp::Unit * first, context->create_unit("first", {}));
    SHW_ASSIGN_OR_RETURN(hsdp::Unit * bad, context->create_unit("bad", {}));
    SHW_ASSIGN_OR_RETURN(hsdp::Unit * last, context->create_unit("last", {}));
    for (hsdp::Unit* each : {first, bad, last}) {
      const int64_t rows = each == bad ? 4 + rank : 4;
      SHW_RETURN_IF_ERROR(each->add_parameters({parameter("weight", {rows, 2})}));
      EXPECT_EQ(each->seal().ok(), each != bad);
    }
    // Until an iteration has shown another order, units are gathered ahead as they were created.
    SHW_RETURN_IF_ERROR(first->pre_forward({}));
    SHW_RETURN_IF_ERROR(first->set_forward_prefetch(std::array{bad, last}));
    SHW_RETURN_IF_ERROR(first->post_forward({}));
    SHW_RETURN_IF_ERROR(first->pre_forward({}));
    EXPECT_NE(last->state(), UnitState::kSharded);
    SHW_RETURN_IF_ERROR(first->post_forward({}));
    SHW_RETURN_IF_ERROR(last->pre_forward({}));
    return last->post_forward({});
  }));
}

TEST(Units, ReshardDropsAGatherAndItsWorkDoesNothing) {
  const MeshShape shape{1, 2};
  RankMeshes meshes(shape);
  expect_all_ok(run_ranks(2, [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto context, context_of(&meshes, shape, rank));
    SHW_ASSIGN_OR_RETURN(hsdp::Unit * unit, context->create_unit("layer", {}));
    SHW_RETURN_IF_ERROR(unit->add_parameters({parameter("weight", {4, 3})}));
    SHW_RETURN_IF_ERROR(unit->seal());
    SHW_ASSIGN_OR_RETURN(const collective::WorkPtr work, unit->unshard());
    EXPECT_EQ(unit->state(), UnitState::kGathering);
    SHW_RETURN_IF_ERROR(unit->reshard());
    EXPECT_EQ(unit->state(), UnitState::kSharded);
    SHW_ASSIGN_OR_RETURN(const bool ended, work->wait(-1));
    EXPECT_TRUE(ended);
    EXPECT_EQ(unit->state(), UnitState::kSharded);
    return {};
  }));
}

// Memory of the host, counted.
class CountingAllocator final : public hsdp::ParameterAllocator {
 public:
  Result<std::span<std::byte>> allocate(size_t, uint64_t bytes) override {
    ++alive;
    return std::span(new std::byte[bytes], bytes);
  }
  void release(size_t, std::span<std::byte> memory) noexcept override {
    --alive;
    delete[] memory.data();
  }
  int alive = 0;
};

TEST(Units, AHostMayOwnTheMemoryOfWholeParameters) {
  const MeshShape shape{1, 2};
  RankMeshes meshes(shape);
  expect_all_ok(run_ranks(2, [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto context, context_of(&meshes, shape, rank));
    SHW_ASSIGN_OR_RETURN(hsdp::Unit * unit, context->create_unit("layer", {}));
    const auto allocator = std::make_shared<CountingAllocator>();
    SHW_RETURN_IF_ERROR(unit->set_allocator(allocator));
    const Floats values = mlp_values(1, 15);
    hsdp::ParameterInput input = parameter("weight", {5, 3});
    input.full = std::as_bytes(std::span(values));
    SHW_RETURN_IF_ERROR(unit->add_parameters({input}));
    SHW_RETURN_IF_ERROR(unit->seal());
    SHW_RETURN_IF_ERROR(unit->pre_forward({}));
    EXPECT_EQ(allocator->alive, 1);
    SHW_ASSIGN_OR_RETURN(const hsdp::ParameterView view, unit->full(0));
    EXPECT_TRUE(std::ranges::equal(view.bytes, std::as_bytes(std::span(values))));
    EXPECT_EQ(context->stats().memory.of(hsdp::BufferKind::kParameters).current_bytes, 0U);
    SHW_RETURN_IF_ERROR(unit->post_forward({}));
    EXPECT_EQ(allocator->alive, 0);
    return {};
  }));
}

TEST(Units, TheUnitInsideWhichOthersRunIsKeptAfterForward) {
  RankMeshes meshes{MeshShape{}};
  const auto context = context_of(&meshes, MeshShape{}, 0).value();
  std::vector<hsdp::Unit*> units;
  for (const char* name : {"root", "inner"}) {
    units.push_back(context->create_unit(name, {}).value());
    ASSERT_TRUE(units.back()->add_parameters({parameter(name, {2})}).ok());
    ASSERT_TRUE(units.back()->seal().ok());
  }
  ASSERT_TRUE(units[0]->pre_forward({}).ok());
  ASSERT_TRUE(units[1]->pre_forward({}).ok());
  ASSERT_TRUE(units[1]->post_forward({}).ok());
  ASSERT_TRUE(units[0]->post_forward({}).ok());
  EXPECT_EQ(units[0]->state(), UnitState::kUnsharded);
  EXPECT_EQ(units[1]->state(), UnitState::kSharded);
}

TEST(Units, T21TheNormOfAllGradientsIsTheSameOnAllRanks) {
  const MeshShape shape{2, 2};
  RankMeshes meshes(shape);
  std::vector<double> norms(4);
  expect_all_ok(run_ranks(4, [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto context, context_of(&meshes, shape, rank));
    SHW_ASSIGN_OR_RETURN(hsdp::Unit * unit, context->create_unit("layer", {}));
    std::vector<hsdp::ParameterInput> inputs = {parameter("weight", {5}), parameter("gain", {2})};
    inputs[1].spec.replicate = true;
    SHW_RETURN_IF_ERROR(unit->add_parameters(inputs));
    SHW_RETURN_IF_ERROR(unit->seal());
    SHW_RETURN_IF_ERROR(unit->pre_backward());
    const Floats weight(5, 3.0F);
    const Floats gain(2, -2.0F);
    const hsdp::GradientInput gradients[] = {{0, DType::kFloat32, std::as_bytes(std::span(weight))},
                                             {1, DType::kFloat32, std::as_bytes(std::span(gain))}};
    SHW_RETURN_IF_ERROR(unit->add_gradients(gradients));
    SHW_RETURN_IF_ERROR(unit->post_backward());
    SHW_RETURN_IF_ERROR(context->finalize_backward());
    SHW_ASSIGN_OR_RETURN(norms[static_cast<size_t>(rank)], context->global_norm(2));
    SHW_ASSIGN_OR_RETURN(const double largest,
                         context->global_norm(std::numeric_limits<double>::infinity()));
    EXPECT_EQ(largest, 3.0);
    EXPECT_FALSE(context->global_norm(0).ok());
    SHW_RETURN_IF_ERROR(context->scale_gradients(0.5));
    SHW_ASSIGN_OR_RETURN(const double halved, context->global_norm(1));
    EXPECT_EQ(halved, 9.5);
    return {};
  }));
  EXPECT_EQ(norms, std::vector<double>(4, std::sqrt(5 * 9.0 + 2 * 4.0)));
}

}  // namespace
}  // namespace shardwright::test

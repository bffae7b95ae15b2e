// SPDX-License-Identifier: Apache-2.0
//
// Random models, meshes and policies (T31): boxes tile each tensor, what is packed comes back, and
// training has the bits of one process.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/layout/box.h"
#include "tests/core/hsdp/test_memory.h"
#include "tests/core/hsdp/training.h"
#include "tests/support/random_source.h"

namespace shardwright::test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHW_TEST_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHW_TEST_IS_SANITIZED 1
#endif
#endif

#ifdef SHW_TEST_IS_SANITIZED
constexpr int kLayoutCases = 700;
constexpr int kTrainingCases = 300;
#else
constexpr int kLayoutCases = 8000;
constexpr int kTrainingCases = 2000;
#endif

TrainingCase random_training(RandomSource& random) {
  TrainingCase plan;
  const std::vector<MeshShape> meshes = {{1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 1}, {2, 2}, {3, 1}};
  plan.mesh = random.pick(meshes);
  plan.mesh.separate_reduce = random.chance(30);
  plan.widths.assign(static_cast<size_t>(random.between(2, 4)), 0);
  for (size_t& each : plan.widths) each = static_cast<size_t>(random.between(1, 9));
  plan.steps = 2;
  plan.micro_batches = static_cast<int32_t>(random.between(1, 3));
  plan.accumulation = random.pick(std::vector<Accumulation>{
      Accumulation::kReduceEach, Accumulation::kScatterEach, Accumulation::kReduceAtTheEnd});
  plan.take_gradients = random.chance(50);
  plan.one_finalize = random.chance(30);
  plan.replicate_parameters = random.chance(15);
  plan.options.lanes = static_cast<int32_t>(random.between(0, 3));
  plan.inline_lanes = random.chance(50);
  plan.options.prefetch_depth = static_cast<int32_t>(random.between(0, 3));
  plan.options.prefetch_bytes_max = random.chance(30) ? 100 : 0;
  plan.options.max_inflight_reduce = static_cast<int32_t>(random.between(1, 3));
  plan.options.order_guard_steps = static_cast<int32_t>(random.between(0, 3));
  plan.settings.reshard_after_backward = random.chance(70);
  plan.settings.keep_unsharded_memory = random.chance(30);
  plan.settings.operation = random.pick(std::vector<hsdp::GradientOperation>{
      hsdp::GradientOperation::kAverage, hsdp::GradientOperation::kSum});
  plan.settings.reshard_after_forward = random.pick(std::vector<hsdp::ReshardPolicy>{
      hsdp::ReshardPolicy::kAutomatic, hsdp::ReshardPolicy::kReshard, hsdp::ReshardPolicy::kKeep});
  if (plan.mesh.shard == 4 && random.chance(50)) {
    plan.mesh.secondary = 2;
    plan.settings.reshard_after_forward = hsdp::ReshardPolicy::kSecondary;
    plan.settings.secondary_size = 2;
  }
  if (!plan.replicate_parameters && random.chance(30))
    plan.unit.layout_mode = hsdp::LayoutMode::kRagged;
  if (random.chance(20)) plan.unit.parameter_dtype = DType::kBfloat16;
  if (random.chance(20)) {
    plan.frozen.resize(2 * plan.layers());
    for (size_t each = 0; each < plan.frozen.size(); ++each) plan.frozen[each] = random.chance(40);
  }
  return plan;
}

std::string description(const TrainingCase& plan) {
  return fmt::format(
      "mesh {}x{} separate {} widths {} micro-batches {} accumulation {} take {} replicated {} "
      "lanes {} inline {} depth {} policy {} ragged {} dtype {}",
      plan.mesh.replicate, plan.mesh.shard, plan.mesh.separate_reduce,
      testing::PrintToString(plan.widths), plan.micro_batches, static_cast<int>(plan.accumulation),
      plan.take_gradients, plan.replicate_parameters, plan.options.lanes, plan.inline_lanes,
      plan.options.prefetch_depth, static_cast<int>(plan.settings.reshard_after_forward),
      plan.unit.layout_mode == hsdp::LayoutMode::kRagged, dtype_name(plan.unit.parameter_dtype));
}

TEST(RandomTraining, T31HasTheBitsOfOneProcess) {
  RandomSource random;
  for (int each = 0; each < kTrainingCases && !testing::Test::HasFailure(); ++each) {
    const TrainingCase plan = random_training(random);
    SCOPED_TRACE(description(plan));
    expect_trains_like_one_process(plan);
  }
}

std::vector<hsdp::ParameterInput> random_parameters(RandomSource& random, int32_t world,
                                                    hsdp::LayoutMode mode) {
  std::vector<hsdp::ParameterInput> result(static_cast<size_t>(random.between(1, 4)));
  for (size_t each = 0; each < result.size(); ++each) {
    hsdp::ParameterSpec& spec = result[each].spec;
    spec.fqn = fmt::format("p{}", each);
    spec.dtype = random.pick(std::vector<DType>{DType::kFloat32, DType::kBfloat16, DType::kInt64});
    spec.shape = Dims(static_cast<size_t>(random.between(1, 3)), 0);
    for (int64_t& extent : spec.shape) extent = random.between(0, 9);
    spec.replicate = random.chance(15);
    spec.frozen = random.chance(20);
    if (mode == hsdp::LayoutMode::kRow && random.chance(30)) {
      spec.shard_dim = static_cast<int32_t>(random.between(0, int64_t(spec.shape.size()) - 1));
      if (spec.shard_dim > 0)
        spec.shape[static_cast<size_t>(spec.shard_dim)] = world * random.between(1, 3);
    }
  }
  return result;
}

// Each element of each parameter lies in the box of one rank (in those of all, where it is
// replicated), where a communicator that moves nothing stands for the others.
void expect_boxes_tile(const std::vector<hsdp::ParameterInput>& parameters, int32_t world,
                       hsdp::LayoutMode mode) {
  std::vector<std::vector<int32_t>> holders(parameters.size());
  for (size_t each = 0; each < parameters.size(); ++each)
    holders[each].resize(
        static_cast<size_t>(box_element_count(whole_box(parameters[each].spec.shape))));
  for (int32_t rank = 0; rank < world; ++rank) {
    auto mesh = hsdp::HsdpMesh::create(Mesh{{world}, {}, {}}, rank).value();
    if (world > 1) {
      const Status set = mesh->set_communicator(0, hsdp::CommunicatorLane::kGather,
                                                collective::make_fake_communicator(rank, world));
      ASSERT_TRUE(set.ok()) << set.to_string();
    }
    const auto context = hsdp::Hsdp::create({}, mesh, make_test_device(true)).value();
    hsdp::UnitOptions options;
    options.layout_mode = mode;
    hsdp::Unit* unit = context->create_unit("unit", options).value();
    ASSERT_TRUE(unit->add_parameters(parameters).ok());
    const Status sealed = unit->seal();
    ASSERT_TRUE(sealed.ok()) << sealed.to_string();
    for (size_t each = 0; each < parameters.size(); ++each) {
      const Dims& shape = parameters[each].spec.shape;
      const Box box = unit->box(each).value();
      const Status inside = check_box(box, shape);
      ASSERT_TRUE(inside.ok()) << inside.to_string();
      EXPECT_EQ(box.sizes, unit->local(each).value().shape);
      for (size_t element = 0; element < holders[each].size(); ++element) {
        int64_t rest = static_cast<int64_t>(element);
        bool is_inside = true;
        for (size_t dim = shape.size(); dim-- > 0; rest /= shape[dim]) {
          const int64_t at = rest % shape[dim] - box.offsets[dim];
          is_inside = is_inside && at >= 0 && at < box.sizes[dim];
        }
        holders[each][element] += is_inside ? 1 : 0;
      }
    }
  }
  for (size_t each = 0; each < parameters.size(); ++each) {
    const int32_t expected = parameters[each].spec.replicate ? world : 1;
    EXPECT_TRUE(
        std::ranges::all_of(holders[each], [expected](int32_t count) { return count == expected; }))
        << "parameter " << each << " " << testing::PrintToString(parameters[each].spec.shape);
  }
}

TEST(RandomTraining, T31BoxesOfAllRanksTileEachParameter) {
  RandomSource random;
  for (int each = 0; each < kLayoutCases && !testing::Test::HasFailure(); ++each) {
    const int32_t world = static_cast<int32_t>(random.between(1, 6));
    const hsdp::LayoutMode mode =
        random.chance(40) ? hsdp::LayoutMode::kRagged : hsdp::LayoutMode::kRow;
    const auto parameters = random_parameters(random, world, mode);
    SCOPED_TRACE(testing::Message() << "world " << world << ", mode " << static_cast<int>(mode));
    expect_boxes_tile(parameters, world, mode);
  }
}

}  // namespace
}  // namespace shardwright::test

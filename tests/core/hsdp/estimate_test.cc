// SPDX-License-Identifier: Apache-2.0
//
// What training takes is what was foretold (T29): in all, of each kind, of each unit.
#include "core/hsdp/estimate.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/core/hsdp/training.h"

namespace shardwright::test {
namespace {

using hsdp::BufferKind;
using hsdp::EstimatedUnit;
using hsdp::MemoryStats;

struct NamedCase {
  std::string name;
  TrainingCase plan;
};

// The units that RankTrainer makes.
std::vector<EstimatedUnit> units_of(const TrainingCase& plan) {
  std::vector<EstimatedUnit> units;
  for (size_t layer = 0; layer < plan.layers(); ++layer) {
    const auto in = static_cast<int64_t>(plan.widths[layer]);
    const auto out = static_cast<int64_t>(plan.widths[layer + 1]);
    std::vector<hsdp::ParameterSpec> specs(2);
    specs[0].fqn = "weight";
    specs[0].shape = {out, in};
    specs[0].shard_dim = plan.weight_shard_dim;
    specs[1].fqn = "bias";
    specs[1].shape = {out};
    for (size_t each = 0; each < 2; ++each) {
      specs[each].replicate = plan.replicate_parameters || (each == 1 && plan.replicate_biases);
      specs[each].frozen = !plan.frozen.empty() && plan.frozen[2 * layer + each];
    }
    auto groups = hsdp::estimated_groups(specs, plan.unit, plan.mesh.shard);
    EXPECT_TRUE(groups.ok()) << groups.status().to_string();
    EstimatedUnit unit;
    if (groups.ok()) unit.groups = std::move(groups).value();
    unit.settings = plan.settings;
    unit.adds_gradients = !plan.take_gradients;
    units.push_back(std::move(unit));
  }
  return units;
}

MemoryStats foretold(const TrainingCase& plan) {
  hsdp::EstimatedWorld world;
  world.shard_size = plan.mesh.shard;
  world.replicate_size = plan.mesh.replicate;
  return hsdp::estimate_memory(units_of(plan), plan.options, world);
}

std::vector<MemoryStats> measured(const TrainingCase& plan) {
  RankMeshes meshes(plan.mesh);
  std::vector<MemoryStats> stats(static_cast<size_t>(plan.mesh.world()));
  expect_all_ok(run_ranks(plan.mesh.world(), [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto trainer, RankTrainer::create(plan, rank, meshes.take(rank)));
    for (int32_t step = 0; step < plan.steps; ++step) SHW_RETURN_IF_ERROR(trainer->run_step(step));
    stats[static_cast<size_t>(rank)] = trainer->context().stats().memory;
    return {};
  }));
  return stats;
}

void expect_as_foretold(const MemoryStats& found, const MemoryStats& expected) {
  EXPECT_EQ(found.total.peak_bytes, expected.total.peak_bytes);
  for (size_t kind = 0; kind < hsdp::kBufferKinds; ++kind) {
    EXPECT_EQ(found.by_kind[kind].peak_bytes, expected.by_kind[kind].peak_bytes)
        << hsdp::buffer_kind_name(static_cast<BufferKind>(kind));
    EXPECT_EQ(found.by_kind[kind].current_bytes, expected.by_kind[kind].current_bytes)
        << hsdp::buffer_kind_name(static_cast<BufferKind>(kind));
  }
  ASSERT_EQ(found.by_unit.size(), expected.by_unit.size());
  for (const auto& [unit, use] : found.by_unit)
    EXPECT_EQ(use.peak_bytes, expected.by_unit.at(unit).peak_bytes) << "unit " << unit;
}

std::vector<NamedCase> cases() {
  std::vector<NamedCase> all;
  const auto add = [&](std::string name, auto&& change) {
    TrainingCase plan;
    plan.mesh = {1, 3};
    plan.steps = 3;
    plan.widths = {13, 37, 29, 17, 3};
    change(plan);
    all.push_back({std::move(name), plan});
  };
  add("rows", [](TrainingCase&) {});
  add("one rank", [](TrainingCase& plan) { plan.mesh = {1, 1}; });
  add("replicas", [](TrainingCase& plan) { plan.mesh = {2, 2}; });
  add("replicas only", [](TrainingCase& plan) { plan.mesh = {2, 1}; });
  add("ragged", [](TrainingCase& plan) {
    plan.mesh = {1, 4};
    plan.unit.layout_mode = hsdp::LayoutMode::kRagged;
  });
  add("bfloat16 parameters, float32 sums", [](TrainingCase& plan) {
    plan.unit.parameter_dtype = DType::kBfloat16;
    plan.unit.reduce_dtype = DType::kFloat32;
  });
  add("bfloat16 sums", [](TrainingCase& plan) {
    plan.mesh = {2, 2};
    plan.unit.reduce_dtype = DType::kBfloat16;
  });
  add("deep prefetch", [](TrainingCase& plan) { plan.options.prefetch_depth = 2; });
  add("no prefetch", [](TrainingCase& plan) { plan.options.prefetch_depth = 0; });
  add("bounded prefetch", [](TrainingCase& plan) {
    plan.options.prefetch_depth = 3;
    plan.options.prefetch_bytes_max = 5000;
  });
  add("two reductions", [](TrainingCase& plan) {
    plan.mesh = {2, 2};
    plan.options.max_inflight_reduce = 2;
  });
  add("lanes", [](TrainingCase& plan) { plan.options.lanes = 3; });
  add("kept parameters",
      [](TrainingCase& plan) { plan.settings.reshard_after_forward = hsdp::ReshardPolicy::kKeep; });
  add("kept memory", [](TrainingCase& plan) { plan.settings.keep_unsharded_memory = true; });
  add("secondary shards", [](TrainingCase& plan) {
    plan.mesh = {1, 4, 2};
    plan.settings.reshard_after_forward = hsdp::ReshardPolicy::kSecondary;
    plan.settings.secondary_size = 2;
  });
  add("kept after backward",
      [](TrainingCase& plan) { plan.settings.reshard_after_backward = false; });
  add("replicated biases", [](TrainingCase& plan) { plan.replicate_biases = true; });
  add("replicated parameters, cast", [](TrainingCase& plan) {
    plan.replicate_parameters = true;
    plan.unit.parameter_dtype = DType::kBfloat16;
  });
  add("gradients of the host", [](TrainingCase& plan) { plan.take_gradients = true; });
  add("frozen ones", [](TrainingCase& plan) {
    plan.frozen = {true, false, true, true, false, false, false, true};
  });
  return all;
}

TEST(Estimate, T29TrainingTakesWhatWasForetold) {
  for (const NamedCase& each : cases()) {
    SCOPED_TRACE(each.name);
    const MemoryStats expected = foretold(each.plan);
    for (const MemoryStats& found : measured(each.plan)) expect_as_foretold(found, expected);
  }
}

// Shards and their gradients, parameters and gathered rows of the units that are alive, whole
// gradients of one unit, and packed ones.
TEST(Estimate, APeakIsWithinWhatTheBuffersAdd) {
  for (const int32_t depth : {0, 1, 2}) {
    TrainingCase plan;
    plan.mesh = {1, 4};
    plan.widths = {64, 64, 64, 64, 64};
    plan.options.prefetch_depth = depth;
    const uint64_t unit = (64 * 64 + 64) * sizeof(float);
    const uint64_t all = 4 * unit;
    const uint64_t bound =
        all / 4 + 2 * (1 + static_cast<uint64_t>(depth)) * unit + unit + unit + unit / 4 + all / 4;
    const MemoryStats stats = foretold(plan);
    EXPECT_LE(stats.total.peak_bytes, bound) << depth;
    EXPECT_EQ(stats.of(BufferKind::kGathered).peak_bytes, std::max(1, depth) * unit);
    EXPECT_EQ(stats.of(BufferKind::kParameters).peak_bytes, unit);
  }
}

TEST(Estimate, SumsThatLandTakeAsMuchAgain) {
  TrainingCase plan;
  plan.mesh = {1, 2};
  hsdp::EstimatedWorld world;
  world.shard_size = 2;
  const auto units = units_of(plan);
  const MemoryStats without = hsdp::estimate_memory(units, plan.options, world);
  world.gradients_land = true;
  const MemoryStats with = hsdp::estimate_memory(units, plan.options, world);
  EXPECT_EQ(without.of(BufferKind::kLanding).peak_bytes, 0U);
  EXPECT_EQ(with.of(BufferKind::kLanding).peak_bytes, with.of(BufferKind::kPacked).peak_bytes);
}

// A unit whose forward is around those of the others keeps its parameters until its backward.
TEST(Estimate, ARootKeepsItsParameters) {
  TrainingCase plan;
  plan.mesh = {1, 2};
  plan.widths = {16, 16, 16, 16};
  std::vector<EstimatedUnit> units = units_of(plan);
  hsdp::EstimatedWorld world;
  world.shard_size = 2;
  const uint64_t unit = (16 * 16 + 16) * sizeof(float);
  EXPECT_EQ(
      hsdp::estimate_memory(units, plan.options, world).of(BufferKind::kParameters).peak_bytes,
      unit);
  units[0].is_root = true;
  EXPECT_EQ(
      hsdp::estimate_memory(units, plan.options, world).of(BufferKind::kParameters).peak_bytes,
      2 * unit);
}

TEST(Estimate, MemoryOfTheHostIsNotCounted) {
  TrainingCase plan;
  plan.mesh = {1, 2};
  std::vector<EstimatedUnit> units = units_of(plan);
  for (EstimatedUnit& unit : units) unit.has_allocator = true;
  hsdp::EstimatedWorld world;
  world.shard_size = 2;
  const MemoryStats stats = hsdp::estimate_memory(units, plan.options, world);
  EXPECT_EQ(stats.of(BufferKind::kParameters).peak_bytes, 0U);
  EXPECT_GT(stats.of(BufferKind::kGathered).peak_bytes, 0U);
}

TEST(Estimate, ParametersTravelInGroupsOfOneDtype) {
  std::vector<hsdp::ParameterSpec> specs(4);
  for (size_t each = 0; each < specs.size(); ++each) {
    specs[each].fqn = "p" + std::to_string(each);
    specs[each].shape = {4};
  }
  specs[1].dtype = DType::kBfloat16;
  specs[2].replicate = true;
  const auto groups = hsdp::estimated_groups(specs, {}, 2);
  ASSERT_TRUE(groups.ok());
  ASSERT_EQ(groups->size(), 3U);
  EXPECT_EQ((*groups)[0].layout.size(), 2U);
  EXPECT_EQ((*groups)[1].layout.dtype(), DType::kBfloat16);
  EXPECT_EQ((*groups)[2].layout.replicated_elements(), 4);
  specs[3].shape = {};
  EXPECT_EQ(hsdp::estimated_groups(specs, {}, 2).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace shardwright::test

// SPDX-License-Identifier: Apache-2.0
//
// Plans of jobs as they are run, and of thousands of random ones: described by layouts they are
// what they are box by box.
#include <numeric>

#include <fmt/format.h>

#include "tests/core/plan/describe/random_job.h"
#include "tests/support/run_length.h"

namespace shardwright::plan::test {
namespace {

JobEntry plain(std::string name, Dims shape, EntryKind kind = EntryKind::kAuto) {
  JobEntry entry;
  entry.name = std::move(name);
  entry.shape = std::move(shape);
  entry.kind = kind;
  return entry;
}

JobEntry object(std::string name, uint64_t bytes, EntryKind kind = EntryKind::kAuto) {
  JobEntry entry;
  entry.name = std::move(name);
  entry.form = JobEntry::Form::kObject;
  entry.object_bytes = bytes;
  entry.kind = kind;
  return entry;
}

SaveRules lowest_rank() {
  SaveRules rules;
  rules.owner = OwnerRule::kLowestRank;
  return rules;
}

SaveRules megatron() {
  SaveRules rules;
  rules.owner = OwnerRule::kExact;
  rules.preset = Preset::kMegatron;
  return rules;
}

TEST(GlobalPlan, FullySharded) {
  const auto layout = layout_of({{8}, {}, {}}, {shard(0)});
  const Job job = [&](int32_t) {
    return std::vector<JobEntry>{sharded("w", {64, 4}, layout), sharded("odd", {13, 2}, layout),
                                 sharded("short", {3}, layout), plain("step", {})};
  };
  expect_layouts_equal_boxes(job, 8);
  expect_layouts_equal_boxes(job, 8, lowest_rank());
  expect_layouts_equal_boxes(job, 8, megatron());
}

// Boxes without elements begin where a neighbour does: nobody writes them, and all of the neighbour
// is written.
TEST(GlobalPlan, EmptyBoxesOwnNothingOfTheirNeighbours) {
  const std::vector<std::vector<int64_t>> kLines = {{5, 0, 5}, {0, 5, 0}, {0, 0, 10}};
  const auto short_layout = layout_of({{3}, {}, {}}, {shard(0)});
  const Job job = [&](int32_t rank) {
    std::vector<JobEntry> entries = {sharded("short", {1, 2}, short_layout)};
    for (size_t i = 0; i < kLines.size(); ++i) {
      const std::vector<int64_t>& line = kLines[i];
      const int64_t begin = std::accumulate(line.begin(), line.begin() + rank, int64_t{0});
      JobEntry entry = sharded(fmt::format("line{}", i),
                               {std::accumulate(line.begin(), line.end(), int64_t{0})}, nullptr);
      entry.form = JobEntry::Form::kBoxes;
      entry.boxes = {box({begin}, {line[static_cast<size_t>(rank)]})};
      entries.push_back(std::move(entry));
    }
    return entries;
  };
  for (const SaveRules& rules : {SaveRules(), lowest_rank(), megatron()}) {
    expect_layouts_equal_boxes(job, 3, rules);
    const auto world = world_of(job, 3);
    ASSERT_TRUE(world.ok());
    const Result<PlannedSave> plan = explicit_plan(*world, rules);
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    uint64_t written = 0;
    for (const RankList& list : plan->lists) {
      for (const WriteItem& item : list.items) {
        EXPECT_NE(item.size_bytes, 0U);
        written += item.size_bytes;
      }
    }
    EXPECT_EQ(written, 4U * (2 + 10 + 5 + 10));
  }
}

TEST(GlobalPlan, HybridShardedBalancesReplicas) {
  const auto layout = layout_of({{4, 8}, {"replica", "shard"}, {}}, {replicate(), shard(0)});
  const Job job = [&](int32_t) {
    std::vector<JobEntry> entries;
    for (int i = 0; i < 40; ++i) {
      entries.push_back(sharded("w" + std::to_string(i), {64 + i % 5, 3}, layout));
      entries.push_back(plain("norm" + std::to_string(i), {7 + i % 3}));
    }
    for (int i = 0; i < 9; ++i)
      entries.push_back(
          object("object" + std::to_string(i), 28 + 4 * static_cast<uint64_t>(i % 3)));
    return entries;
  };
  expect_layouts_equal_boxes(job, 32);
  expect_layouts_equal_boxes(job, 32, megatron());
}

// Tensor parallel groups of 4 inside data parallel replicas; columns and rows of equal size are
// chosen as one batch although they cut different dimensions.
TEST(GlobalPlan, TensorParallelRowsAndColumns) {
  const Job job = [](int32_t rank) {
    Mesh mesh{{4}, {"tp"}, {}};
    for (int32_t i = 0; i < 4; ++i) mesh.ranks.push_back(rank / 4 * 4 + i);
    const auto rows = layout_of(mesh, {shard(0)});
    const auto columns = layout_of(mesh, {shard(-1)});
    std::vector<JobEntry> entries;
    for (int i = 0; i < 12; ++i) {
      entries.push_back(sharded("up" + std::to_string(i), {16, 16}, rows));
      entries.push_back(sharded("down" + std::to_string(i), {16, 16}, columns));
    }
    return entries;
  };
  expect_layouts_equal_boxes(job, 32);
  const auto world = world_of(job, 32);
  ASSERT_TRUE(world.ok());
  EXPECT_EQ(world->descriptions.size(), 1U) << "sub-meshes are one description";
}

TEST(GlobalPlan, PipelineStagesHoldDifferentNames) {
  const Job job = [](int32_t rank) {
    const int32_t stage = rank / 8;
    Mesh mesh{{2, 4}, {"dp", "tp"}, {}};
    for (int32_t i = 0; i < 8; ++i) mesh.ranks.push_back(stage * 8 + i);
    const auto both = layout_of(mesh, {shard(0), shard(1)});
    const auto nested = layout_of(mesh, {shard(0), shard(0)});
    std::vector<JobEntry> entries;
    for (int i = 0; i < 3; ++i) {
      const std::string prefix = "layer." + std::to_string(3 * stage + i);
      entries.push_back(sharded(prefix + ".weight", {10, 9}, both));
      entries.push_back(sharded(prefix + ".bias", {21}, nested));
    }
    entries.push_back(plain("embedding", {6, 2}));
    entries.push_back(object("rng", 10 + static_cast<uint64_t>(rank), EntryKind::kRankLocal));
    entries.push_back(object("step", 4));
    return entries;
  };
  expect_layouts_equal_boxes(job, 32);
  const auto world = world_of(job, 32);
  ASSERT_TRUE(world.ok());
  EXPECT_EQ(world->descriptions.size(), 4U) << "one per stage, whatever the ranks add";
  EXPECT_EQ(world->parts.size(), 32U);
}

TEST(GlobalPlan, EqualsTheExplicitPlanOfAThousandRanks) {
  const auto layout =
      layout_of({{16, 8, 8}, {"dp", "cp", "tp"}, {}}, {shard(0), replicate(), shard(1)});
  const auto rows = layout_of({{16, 8, 8}, {}, {}}, {shard(0), shard(0), replicate()});
  const Job job = [&](int32_t) {
    std::vector<JobEntry> entries;
    for (int i = 0; i < 30; ++i) {
      const std::string layer = "layers." + std::to_string(i);
      entries.push_back(sharded(layer + ".attention", {4096, 1024}, layout));
      entries.push_back(sharded(layer + ".mlp", {1111, 4096}, layout));
      entries.push_back(sharded(layer + ".gate", {1000, 5}, rows));
      entries.push_back(plain(layer + ".norm", {1024}));
    }
    return entries;
  };
  expect_layouts_equal_boxes(job, 1024);
}

TEST(GlobalPlan, RandomJobsEqualTheExplicitPlan) {
  const int64_t jobs = shardwright::test::rounds(3000, 100000);
  RandomSource starts;
  int64_t planned_jobs = 0;
  for (int64_t i = 0; i < jobs && !testing::Test::HasFailure(); ++i) {
    const uint64_t start = starts.next();
    SCOPED_TRACE("job of start " + std::to_string(start));
    RandomSource random(start);
    const RandomJob job = random_job(random);
    SaveRules rules = random.chance(25) ? lowest_rank() : SaveRules();
    if (random.chance(33)) rules = megatron();
    const Result<RankPlans> world = world_of(job.job(), job.ranks, rules);
    ASSERT_TRUE(world.ok()) << world.status().to_string();
    const Result<PlannedSave> expected = explicit_plan(*world, rules);
    const Result<PlannedSave> plan = global_plan(*world, rules);
    ASSERT_EQ(plan.ok(), expected.ok()) << plan.status().to_string() << "\n"
                                        << expected.status().to_string();
    if (!expected.ok()) {
      ASSERT_EQ(plan.status().to_string(), expected.status().to_string());
      continue;
    }
    expect_equal_plans(*plan, *expected);
    ++planned_jobs;
  }
  EXPECT_GT(planned_jobs, jobs * 9 / 10);
}

}  // namespace
}  // namespace shardwright::plan::test

// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of jobs describe, and that jobs are planned as their ranks would be box by box.
#include "core/job_description/describe_ranks.h"
#include "core/plan/options_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/estimate/estimate_internal.h"
#include "core/plan/describe/replica_digests.h"
#include "core/plan/wire/wire.h"
#include "tests/core/plan/world.h"
#include "tests/support/random_source.h"
#include "tests/support/run_length.h"

namespace shardwright::estimate {
namespace {

using job_description::describe_ranks;
using job_description::read_job_description;
using plan::encode;
using plan::OwnerRule;
using plan::save_rules_text;
using shardwright::test::RandomSource;

JobDescription read(const std::string& text) {
  Result<JobDescription> job = read_job_description(text);
  EXPECT_TRUE(job.ok()) << job.status().to_string() << "\n" << text;
  return job.ok() ? *std::move(job) : JobDescription();
}

constexpr char kStages[] = R"json({"schema": 1,
  "meshes": {"m": {"axes": {"pp": 2, "dp": 3, "tp": 2}}},
  "tensors": [
    {"name": "l.{i}.w", "repeat": {"i": 4}, "at": {"pp": "i"}, "dtype": "float32", "shape": [7, 600],
     "placements": {"dp": "Shard(0)", "tp": "Shard(1)"}},
    {"name": "l.{i}.cube", "repeat": {"i": 2}, "dtype": "int8", "shape": [5, 4, 9], "mesh": "m",
     "placements": {"pp": "Shard(0)", "dp": "Shard(1)", "tp": "Shard(2)"}},
    {"name": "norm", "dtype": "bfloat16", "shape": [5]},
    {"name": "rng", "dtype": "uint8", "shape": [16], "kind": "rank_local"},
    {"name": "empty", "dtype": "uint8", "shape": [0, 3], "placements": {"tp": "Shard(0)"}}],
  "objects": [{"name": "step", "bytes": 8}, {"name": "loader", "bytes": 100, "kind": "rank_local"}]})json";

// A mesh of one to three axes, tensors of one to three dimensions cut by some of them.
std::string random_job(RandomSource& random) {
  const std::vector<std::string> axes = {"a", "b", "c"};
  const auto used = static_cast<size_t>(random.between(1, 3));
  std::string mesh;
  for (size_t i = 0; i < used; ++i)
    mesh += fmt::format("{}\"{}\": {}", i == 0 ? "" : ", ", axes[i], random.between(1, 4));
  std::string tensors;
  const int64_t count = random.between(1, 6);
  for (int64_t t = 0; t < count; ++t) {
    const int64_t dimensions = random.between(1, 3);
    std::string shape;
    for (int64_t d = 0; d < dimensions; ++d)
      shape += fmt::format("{}{}", d == 0 ? "" : ", ", random.between(0, 13));
    std::string placements;
    for (size_t i = 0; i < used; ++i) {
      if (!random.chance(70)) continue;
      placements += fmt::format("{}\"{}\": \"Shard({})\"", placements.empty() ? "" : ", ", axes[i],
                                random.between(0, dimensions - 1));
    }
    tensors += fmt::format(R"({}{{"name": "t{}", "dtype": "{}", "shape": [{}], "mesh": "m"{}}})",
                           t == 0 ? "" : ",\n", t, random.chance(50) ? "float32" : "uint8", shape,
                           placements.empty() ? "" : ", \"placements\": {" + placements + "}");
  }
  return fmt::format(
      R"({{"schema": 1, "meshes": {{"m": {{"axes": {{{}}}}}}}, "tensors": [{}], "objects": [)"
      R"({{"name": "step", "bytes": 8}}, {{"name": "loader", "bytes": 5, "kind": "rank_local"}}]}})",
      mesh, tensors);
}

// Each rank describes the boxes that its layouts give.
void expect_boxes_of_layouts(const JobDescription& job) {
  const auto ranks = describe_ranks(job, save_rules_text({}));
  ASSERT_TRUE(ranks.ok()) << ranks.status().to_string();
  ASSERT_EQ(ranks->rank_count(), job.rank_count);
  const plan::RankPlans& plans = *ranks;
  for (uint32_t r = 0; r < plans.rank_count(); ++r) {
    const plan::RankView rank = plans.of(r);
    uint32_t described = 0;
    for (const JobTensor& tensor : job.tensors) {
      const Layout& layout = *job.layouts[tensor.layout].layout;
      if (!layout.contains(static_cast<int32_t>(r))) continue;
      const auto pieces = layout.pieces(tensor.shape, static_cast<int32_t>(r));
      ASSERT_TRUE(pieces.ok()) << pieces.status().to_string();
      std::vector<Box> expected;
      for (const Piece& piece : *pieces) expected.push_back(piece.box);
      std::vector<Box> found = rank.boxes_of(described);
      std::erase_if(expected, box_is_empty);
      std::erase_if(found, box_is_empty);
      ASSERT_EQ(rank.description.catalog.tensor_name(described), tensor.name);
      ASSERT_EQ(found, expected) << "rank " << r << ", tensor " << tensor.name;
      ++described;
    }
    ASSERT_EQ(rank.description.forms.size(), described);
  }
}

// The plan is that of the same job described box by box.
void expect_same_plan(const JobDescription& job, OwnerRule owner) {
  EstimateOptions options;
  options.owner = owner;
  options.rank_bytes_per_second = 1000;
  const auto found = simulate_save(job, options);
  plan::SaveRules rules;
  rules.owner = owner;
  rules.verify_replicas = plan::VerifyReplicas::kOff;
  const auto ranks = describe_ranks(job, save_rules_text(rules));
  ASSERT_TRUE(ranks.ok()) << ranks.status().to_string();
  const auto listed = plan::test::listed_ranks(*ranks);
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  const auto expected = make_global_plan(*listed, rules);
  ASSERT_EQ(found.status().to_string(), expected.status().to_string());
  if (!found.ok()) return;
  EXPECT_EQ(*encode(found->plan), *encode(*expected));
  EXPECT_EQ(found->estimate.moved_bytes, expected->writes.bytes);
}

TEST(DescribeRanks, StagesAreDescribedOnceEach) {
  const JobDescription job = read(kStages);
  expect_boxes_of_layouts(job);
  const auto ranks = describe_ranks(job, "");
  ASSERT_TRUE(ranks.ok());
  EXPECT_EQ(ranks->descriptions.size(), 2U);
  EXPECT_EQ(ranks->parts.size(), 12U) << "sizes of rank_local objects";
  expect_same_plan(job, OwnerRule::kBalanced);
  expect_same_plan(job, OwnerRule::kLowestRank);
}

TEST(DescribeRanks, RandomJobsHaveOneEstimate) {
  RandomSource starts;
  const int64_t jobs = shardwright::test::rounds(400, 20000);
  for (int64_t i = 0; i < jobs && !testing::Test::HasFailure(); ++i) {
    const uint64_t start = starts.next();
    RandomSource random(start);
    const std::string text = random_job(random);
    SCOPED_TRACE("job of start " + std::to_string(start) + ": " + text);
    const JobDescription job = read(text);
    expect_boxes_of_layouts(job);
    expect_same_plan(job, random.chance(30) ? OwnerRule::kLowestRank : OwnerRule::kBalanced);
  }
}

TEST(DescribeRanks, JobsOfBoxesArePlannedToo) {
  const JobDescription job = read(R"json({"schema": 1, "meshes": {"m": {"axes": {"a": 2}}},
    "tensors": [{"name": "w", "dtype": "int8", "shape": [2],
                 "boxes": [{"offsets": [0], "sizes": [2], "ranks": [1]}]}]})json");
  expect_same_plan(job, OwnerRule::kBalanced);
  const auto save = simulate_save(job, {});
  ASSERT_TRUE(save.ok()) << save.status().to_string();
  EXPECT_EQ(save->estimate.held_bytes, (RankColumn{0, 2}));
  EXPECT_EQ(save->estimate.moved_bytes, (RankColumn{0, 2}));
}

}  // namespace
}  // namespace shardwright::estimate

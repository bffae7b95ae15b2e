// SPDX-License-Identifier: Apache-2.0
#include "core/estimate/estimate.h"
#include "core/plan/options_text.h"

#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/estimate/estimate_internal.h"
#include "core/job_description/describe_ranks.h"
#include "core/plan/load/make_load_plan.h"
#include "core/plan/load_plan.h"
#include "core/plan/save/global_plan.h"
#include "core/plan/wire/wire.h"
#include "tests/core/plan/read_list.h"
#include "tests/core/plan/world.h"

namespace shardwright::estimate {
namespace {

namespace test = plan::test;
using job_description::describe_ranks;
using job_description::job_of_checkpoint;
using job_description::read_job_description;
using plan::CatalogBuilder;
using plan::encode;
using plan::LocalPlan;
using plan::ObjectRead;
using plan::OwnerRule;
using plan::ReadItem;
using plan::SaveRules;
using plan::VerifyReplicas;

JobDescription read(const std::string& text) {
  Result<JobDescription> job = read_job_description(text);
  EXPECT_TRUE(job.ok()) << job.status().to_string();
  return job.ok() ? *std::move(job) : JobDescription();
}

constexpr char kMixed[] = R"json({"schema": 1,
  "meshes": {"m": {"axes": {"pp": 2, "dp": 2, "tp": 2}}},
  "tensors": [
    {"name": "l.{i}.w", "repeat": {"i": 4}, "at": {"pp": "i"}, "dtype": "float32", "shape": [7, 600],
     "placements": {"dp": "Shard(0)", "tp": "Shard(1)"}},
    {"name": "l.{i}.r", "repeat": {"i": 4}, "at": {"pp": "i"}, "dtype": "float32", "shape": [40000],
     "placements": {"tp": "Shard(0)"}},
    {"name": "norm", "dtype": "bfloat16", "shape": [5]},
    {"name": "rng", "dtype": "uint8", "shape": [16], "kind": "rank_local"},
    {"name": "empty", "dtype": "uint8", "shape": [0, 3], "placements": {"tp": "Shard(0)"}},
    {"name": "odd", "dtype": "int8", "shape": [4, 2],
     "boxes": [{"offsets": [0, 0], "sizes": [1, 2], "ranks": [6]},
               {"offsets": [1, 0], "sizes": [3, 2], "ranks": [2, 0]}]}],
  "objects": [{"name": "step", "bytes": 8}, {"name": "loader", "bytes": 100, "kind": "rank_local"}]})json";

// The states of the ranks as they would really be.
std::vector<State> states_of(const JobDescription& job) {
  std::vector<State> states;
  for (int32_t rank = 0; rank < job.rank_count; ++rank) {
    std::vector<test::Holding> holdings;
    for (const JobTensor& tensor : job.tensors) {
      Result<std::vector<Box>> boxes = held_boxes(job, tensor, rank);
      EXPECT_TRUE(boxes.ok());
      const bool on_layout =
          tensor.layout != kHeldByBoxes && job.layouts[tensor.layout].layout->contains(rank);
      if (boxes->empty() && !on_layout) continue;
      holdings.push_back({tensor.name, tensor.dtype, tensor.shape, *boxes, tensor.kind});
    }
    std::vector<test::Bytes> objects;
    for (const JobObject& object : job.objects) {
      if (job.layouts[object.layout].layout->contains(rank))
        objects.push_back({object.name, std::string(object.size_bytes, 'x'), object.kind});
    }
    states.push_back(test::state_of(holdings, objects));
  }
  return states;
}

TEST(SimulateSave, PlansWhatTheRanksWouldPlan) {
  const JobDescription job = read(kMixed);
  for (const OwnerRule owner : {OwnerRule::kBalanced, OwnerRule::kLowestRank}) {
    SaveRules rules;
    rules.owner = owner;
    rules.verify_replicas = VerifyReplicas::kOff;
    const std::vector<LocalPlan> real = test::local_plans(states_of(job), rules);
    const auto described = describe_ranks(job, save_rules_text(rules));
    ASSERT_TRUE(described.ok()) << described.status().to_string();
    ASSERT_EQ(described->rank_count(), real.size());
    for (uint32_t r = 0; r < real.size(); ++r) {
      const auto local = test::listed_plan(test::local_of(*described, r));
      ASSERT_TRUE(local.ok()) << local.status().to_string();
      EXPECT_EQ(*encode(*local), *encode(real[r])) << "rank " << r;
    }
    EstimateOptions options;
    options.owner = owner;
    const auto save = simulate_save(job, options);
    ASSERT_TRUE(save.ok()) << save.status().to_string();
    auto plan = test::plan_locals(real, rules);
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    plan->generation.clear();
    EXPECT_EQ(*encode(save->plan), *encode(static_cast<const GlobalSavePlan&>(*plan)));
  }
}

TEST(SimulateSave, AddsUpWhatEachRankWrites) {
  const auto save = simulate_save(read(kMixed), {});
  ASSERT_TRUE(save.ok()) << save.status().to_string();
  const Estimate& estimate = save->estimate;
  EXPECT_EQ(estimate.rank_count, 8);
  EXPECT_EQ(estimate.file_count, 8U);
  EXPECT_EQ(estimate.stored_bytes, save->plan.catalog.payload_bytes());
  uint64_t payload = 0;
  for (size_t r = 0; r < 8; ++r) {
    payload += estimate.moved_bytes[r];
    EXPECT_EQ(estimate.over_bytes[r], 0U);
    EXPECT_EQ(estimate.moved_bytes[r], save->plan.writes.bytes[r]);
    EXPECT_EQ(estimate.operations[r], save->plan.writes.item_counts[r]);
    EXPECT_EQ(estimate.staging_bytes[r], estimate.moved_bytes[r]);
    EXPECT_EQ(estimate.peak_bytes[r], estimate.held_bytes[r] + estimate.staging_bytes[r] +
                                          (r == 0 ? estimate.plan_bytes : 0));
  }
  EXPECT_EQ(payload, estimate.stored_bytes);
  // w: 7 x 600 over 2 x 2, r: 40000 over 2, of two layers each; norm, rng, step, loader; odd.
  EXPECT_EQ(estimate.held_bytes[0], 2 * 4 * (4 * 300 + 20000) + 10 + 16 + 8 + 100 + 6U);
}

TEST(SimulateSave, BoundsStagingByTheMemoryBudget) {
  EstimateOptions options;
  options.memory_budget_bytes = 1000;
  const auto save = simulate_save(read(kMixed), options);
  ASSERT_TRUE(save.ok());
  EXPECT_EQ(save->estimate.staging_bytes, RankColumn(8, 1000));
}

TEST(SimulateSave, IsBoundedByTheBoxesOfAllRanks) {
  const JobDescription cut =
      read(R"json({"schema": 1, "meshes": {"m": {"axes": {"dp": 128}}}, "tensors": [
    {"name": "w", "dtype": "int8", "shape": [134217728],
     "placements": {"dp": "StridedShard(0, 1048576)"}}]})json");
  const Status status = simulate_save(cut, {}).status();
  EXPECT_FAILURE(status, StatusCode::kResourceExhausted, "more than 67108864 boxes");
}

TEST(JobOfCheckpoint, RefusesOwnersThatAreNoRanks) {
  auto stored = std::make_shared<StoredCheckpoint>();
  CatalogBuilder::Tensor tensor;
  tensor.name = "rng";
  tensor.dtype = DType::kUint8;
  tensor.kind = EntryKind::kRankLocal;
  tensor.rank = 300000;
  const std::vector<int64_t> shape = {1};
  tensor.shape = shape;
  const std::vector<CatalogBuilder::Chunk> chunks = {{Box{{0}, {1}}, 0}};
  ASSERT_TRUE(CatalogBuilder(&stored->catalog).add_tensor(tensor, chunks).ok());
  EXPECT_FAILURE(job_of_checkpoint(stored, 1).status(), StatusCode::kDataLoss, "1 ranks");
}

TEST(SimulateSave, FindsWhatTheSaveWouldRefuse) {
  const JobDescription hole = read(R"json({"schema": 1, "ranks": 2, "tensors": [
    {"name": "w", "dtype": "int8", "shape": [4],
     "boxes": [{"offsets": [0], "sizes": [2], "ranks": [0]},
               {"offsets": [3], "sizes": [1], "ranks": [1]}]}]})json");
  EXPECT_FAILURE(simulate_save(hole, {}).status(), StatusCode::kInvalidArgument, "'w'", "[2:3]");
  const JobDescription tied = read(R"json({"schema": 1, "ranks": 2, "tensors": [
    {"name": "w", "dtype": "int8", "shape": [4], "ranks": [0]},
    {"name": "w", "dtype": "int16", "shape": [4], "ranks": [1]}]})json");
  EXPECT_FAILURE(simulate_save(tied, {}).status(), StatusCode::kInvalidArgument, "'w'", "int8",
                 "int16", "rank 0", "rank 1");
}

TEST(EstimateLoad, AgreesWithTheLoadPlanOfEachRank) {
  const JobDescription source = read(kMixed);
  const JobDescription target = read(R"json({"schema": 1, "meshes": {"m": {"axes": {"a": 3}}},
    "rules": [{"match": "*.w", "placements": {"a": "Shard(1)"}}, {"match": "*"}]})json");
  const auto wanted = lay_out(source, target);
  ASSERT_TRUE(wanted.ok()) << wanted.status().to_string();
  const auto save = simulate_save(source, {});
  ASSERT_TRUE(save.ok());
  const auto estimate = estimate_load(**stored_checkpoint(source, {}), *wanted, {});
  ASSERT_TRUE(estimate.ok()) << estimate.status().to_string();
  const std::vector<State> states = states_of(*wanted);
  for (size_t r = 0; r < states.size(); ++r) {
    const auto plan = make_load_plan(states[r], save->plan.catalog, {}, static_cast<int32_t>(r));
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    EXPECT_EQ(estimate->operations[r], plan->reads.size() + plan->objects.size());
    uint64_t wanted_bytes = 0;
    for (const ReadItem& item : plan::test::reads_of(*plan)) {
      wanted_bytes += box_bytes(
          save->plan.catalog.tensors[save->plan.catalog.tensor_of(item.chunk)].dtype, item.box);
    }
    for (const ObjectRead& item : plan->objects)
      wanted_bytes += save->plan.catalog.objects[item.object].size_bytes;
    EXPECT_EQ(estimate->held_bytes[r], wanted_bytes);
    EXPECT_EQ(estimate->moved_bytes[r] - estimate->over_bytes[r], wanted_bytes);
    EXPECT_GT(estimate->over_bytes[r], 0U) << "columns of a chunk need all of it";
  }
}

// Rows of 4 MiB, each in four digest blocks; on each machine two ranks.
constexpr std::string_view kRowsOf8 = R"json({"schema": 1, "meshes": {"m": {"axes": {"a": 4}}},
  "tensors": [{"name": "w", "dtype": "int8", "shape": [8, 4194304], "placements": {"a": "Shard(0)"}}],
  "objects": [{"name": "o", "bytes": 100}]})json";

uint64_t sum_of(const RankColumn& column) {
  return std::accumulate(column.begin(), column.end(), uint64_t{0});
}

TEST(EstimateLoad, RanksOfAMachineReadOnceWhatSeveralOfThemWant) {
  constexpr uint64_t kAll = uint64_t{8} << 22;
  const JobDescription source = read(std::string(kRowsOf8));
  const auto stored = *stored_checkpoint(source, {});
  const auto load = [&](const char* placement, uint32_t ranks_per_node) {
    const JobDescription target = read(fmt::format(
        R"json({{"schema": 1, "meshes": {{"m": {{"axes": {{"a": 4}}}}}},
          "rules": [{{"match": "*", "placements": {{"a": "{}"}}}}]}})json",
        placement));
    EstimateOptions options;
    options.ranks_per_node = ranks_per_node;
    return *estimate_load(*stored, *lay_out(source, target), options);
  };
  for (const uint32_t alone : {0U, 1U}) {
    const Estimate each = load("Replicate", alone);
    EXPECT_EQ(sum_of(each.moved_bytes), 4 * (kAll + 100));
    EXPECT_EQ(sum_of(each.shared_bytes), 0U);
  }
  // Each machine reads all, half of it by each rank.
  const Estimate replicas = load("Replicate", 2);
  EXPECT_EQ(replicas.moved_bytes, (RankColumn{kAll / 2 + 100, kAll / 2, kAll / 2 + 100, kAll / 2}));
  EXPECT_EQ(replicas.shared_bytes,
            (RankColumn{kAll / 2, kAll / 2 + 100, kAll / 2, kAll / 2 + 100}));
  EXPECT_EQ(sum_of(replicas.over_bytes), 0U);
  // A column is a block of each row; the two of a machine are neighbours that share none.
  const Estimate columns = load("Shard(1)", 2);
  EXPECT_EQ(sum_of(columns.moved_bytes), kAll + 200);
  EXPECT_EQ(sum_of(columns.shared_bytes), 200U);
  EXPECT_EQ(sum_of(load("Shard(0)", 2).moved_bytes), kAll + 200);
  // One machine of four.
  EXPECT_EQ(sum_of(load("Replicate", 4).moved_bytes), kAll + 100);
  EXPECT_EQ(sum_of(load("Replicate", 4).shared_bytes), 3 * (kAll + 100));
  EXPECT_EQ(sum_of(load("Replicate", 64).moved_bytes), kAll + 100);
}

// Columns of half a block: both ranks of a machine need the block, each wants the half of it.
TEST(EstimateLoad, BlocksThatNeighboursNeedAreReadOnceAndNotCountedAsOverRead) {
  const JobDescription source = read(R"json({"schema": 1, "meshes": {"m": {"axes": {"a": 2}}},
    "tensors": [{"name": "w", "dtype": "int8", "shape": [8, 1048576], "placements": {"a": "Shard(0)"}}]})json");
  const JobDescription target = read(R"json({"schema": 1, "meshes": {"m": {"axes": {"a": 2}}},
    "rules": [{"match": "*", "placements": {"a": "Shard(1)"}}]})json");
  const auto wanted = *lay_out(source, target);
  EstimateOptions options;
  const auto alone = *estimate_load(**stored_checkpoint(source, {}), wanted, options);
  EXPECT_EQ(alone.moved_bytes, RankColumn(2, uint64_t{8} << 20));
  EXPECT_EQ(alone.over_bytes, RankColumn(2, uint64_t{4} << 20));
  options.ranks_per_node = 2;
  const auto shared = *estimate_load(**stored_checkpoint(source, {}), wanted, options);
  EXPECT_EQ(shared.moved_bytes, RankColumn(2, uint64_t{4} << 20));
  EXPECT_EQ(shared.shared_bytes, RankColumn(2, uint64_t{4} << 20));
  EXPECT_EQ(shared.over_bytes, RankColumn(2, 0));
}

TEST(SimulateLoad, PlansWhatTheRanksWouldPlan) {
  const JobDescription source = read(kMixed);
  const JobDescription target =
      read(R"json({"schema": 1, "meshes": {"m": {"axes": {"a": 2, "b": 2}}},
    "tensors": [{"name": "l.0.r", "dtype": "float32", "shape": [40000], "placements": {"a": "StridedShard(0, 4)"}},
                {"name": "l.1.r", "dtype": "float32", "shape": [40000], "placements": {"b": "Flat"}},
                {"name": "l.2.r", "dtype": "float32", "shape": [40000],
                 "boxes": [{"offsets": [7], "sizes": [100], "ranks": [1, 3]}]}],
    "rules": [{"match": "*.w", "placements": {"a": "Shard(1)"}}, {"match": "*"}]})json");
  const auto wanted = lay_out(source, target);
  ASSERT_TRUE(wanted.ok()) << wanted.status().to_string();
  const auto stored = stored_checkpoint(source, {});
  ASSERT_TRUE(stored.ok()) << stored.status().to_string();
  const std::vector<State> states = states_of(*wanted);
  size_t rank = 0;
  const Status status = simulate_load(**stored, *wanted, [&](const LoadPlan& plan) {
    auto real = make_load_plan(states[rank], (*stored)->catalog, {}, static_cast<int32_t>(rank));
    EXPECT_TRUE(real.ok()) << real.status().to_string();
    real->generation = (*stored)->generation;
    EXPECT_EQ(*encode(plan), *encode(*real)) << "rank " << rank;
    ++rank;
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(rank, states.size());
}

TEST(SimulateLoad, EndsWithTheFirstFailure) {
  const JobDescription job = read(kMixed);
  const auto stored = stored_checkpoint(job, {});
  ASSERT_TRUE(stored.ok());
  int taken = 0;
  const Status status = simulate_load(**stored, job, [&](const LoadPlan& plan) {
    ++taken;
    return plan.rank == 2 ? data_loss("full") : Status();
  });
  EXPECT_FAILURE(status, StatusCode::kDataLoss, "full");
  EXPECT_EQ(taken, 3);
  JobDescription renamed = job;
  renamed.tensors[0].name = "other";
  EXPECT_FAILURE(simulate_load(**stored, renamed, [](auto) { return Status(); }),
                 StatusCode::kNotFound, "'other'");
}

TEST(Estimate, RefusesBoxesThatBeginOrEndInsideAByte) {
  const auto job = [](const char* dtype, const char* where) {
    return read(std::string(R"json({"schema": 1, "meshes": {"m": {"axes": {"a": 2}}}, "tensors": [
      {"name": "wide", "dtype": "int8", "shape": [2, 6], "placements": {"a": "Shard(1)"}},
      {"name": "w", "shape": [2, 6], "dtype": ")json") +
                dtype + "\", " + where + "}]}");
  };
  const char* by_layout = R"json("placements": {"a": "Shard(1)"})json";
  const char* by_boxes = R"json("boxes": [{"offsets": [0, 0], "sizes": [2, 3], "ranks": [0]},
                                         {"offsets": [0, 3], "sizes": [2, 3], "ranks": [1]}])json";
  for (const char* where : {by_layout, by_boxes}) {
    const JobDescription held = job("int4", where);
    EXPECT_FAILURE(simulate_save(held, {}).status(), StatusCode::kUnimplemented, "'w'",
                   "[0:2, 0:3]", "int4", "whole bytes");
    const auto stored = stored_checkpoint(job("int8", where), {});
    ASSERT_TRUE(stored.ok());
    EXPECT_FAILURE(estimate_load(**stored, held, {}).status(), StatusCode::kUnimplemented, "'w'");
  }
  EXPECT_TRUE(simulate_save(job("int4", R"json("placements": {"a": "Shard(0)"})json"), {}).ok());
  for (const char* shape : {"[3]", "[]"}) {
    const JobDescription whole =
        read(R"json({"schema": 1, "meshes": {"m": {"axes": {"a": 2}}}, "tensors": [
        {"name": "w", "dtype": "int4", "shape": )json" +
             std::string(shape) + "}]}");
    EXPECT_FAILURE(simulate_save(whole, {}).status(), StatusCode::kUnimplemented, "'w'");
  }
}

TEST(EstimateLoad, OfItsOwnLayoutReadsNothingElse) {
  const JobDescription job = read(kMixed);
  const auto estimate = estimate_load(**stored_checkpoint(job, {}), job, {});
  ASSERT_TRUE(estimate.ok()) << estimate.status().to_string();
  EXPECT_EQ(estimate->over_bytes, RankColumn(8, 0));
}

TEST(TensorGroups, HoldEqualTensorsAndCountTheirChunks) {
  const auto save = simulate_save(read(kMixed), {});
  ASSERT_TRUE(save.ok());
  const std::vector<TensorGroup>& groups = save->estimate.groups;
  ASSERT_EQ(groups.size(), 6U);
  EXPECT_EQ(groups[0].names, "l.{0..3}.w");
  EXPECT_EQ(groups[0].tensor_count, 4U);
  EXPECT_EQ(groups[0].chunk_count, 4U);
  EXPECT_EQ(groups[0].smallest_bytes, 3 * 300 * 4U);
  EXPECT_EQ(groups[0].largest_bytes, 4 * 300 * 4U);
  EXPECT_EQ(groups[1].fewest_holders, 2U);
  EXPECT_EQ(groups[1].most_holders, 2U);
  EXPECT_EQ(groups[2].names, "norm");
  EXPECT_EQ(groups[2].most_holders, 8U);
  EXPECT_EQ(groups[4].chunk_count, 0U) << "empty boxes are no chunks";
  EXPECT_EQ(groups[5].fewest_holders, 1U);
  EXPECT_EQ(groups[5].most_holders, 2U);
  for (const TensorGroup& group : groups) EXPECT_TRUE(group.chunks.empty()) << group.names;
}

TEST(TensorGroups, ListTheChunksOfTheirFirstTensorWhenAsked) {
  EstimateOptions options;
  options.listed_chunks = kMaxListedChunks;
  const JobDescription job = read(kMixed);
  const auto save = simulate_save(job, options);
  ASSERT_TRUE(save.ok());
  const TensorGroup& group = save->estimate.groups[0];
  ASSERT_EQ(group.chunks.size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(group.chunks[i].rank, static_cast<int32_t>(i));
    EXPECT_EQ(group.chunks[i].holders, 1U);
  }
  EXPECT_EQ(group.chunks[1].box, test::box({0, 300}, {4, 300}));
  const auto load = estimate_load(**stored_checkpoint(job, {}), job, options);
  ASSERT_TRUE(load.ok()) << load.status().to_string();
  EXPECT_EQ(load->groups[1].chunks[0].rank, 0) << "the first that holds it";
  EXPECT_NE(estimate_json(*load).find(
                "\"chunk_list\":{\"dims\":[0,1],\"offsets\":[[0,0,4,4],[0,300,0,300]],"
                "\"sizes\":[[4,4,3,3],[300,300,300,300]],\"ranks\":[0,1,2,3],"
                "\"holders\":[1,1,1,1]}"),
            std::string::npos)
      << estimate_json(*load);
}

TEST(TensorGroups, ListABoundedNumberOfChunks) {
  const JobDescription job = read(R"json({"schema": 1, "meshes": {"m": {"axes": {"a": 8, "b": 4}}},
    "tensors": [
      {"name": "w", "dtype": "int8", "shape": [8, 4],
       "placements": {"a": "Shard(0)", "b": "Shard(1)"}},
      {"name": "v", "dtype": "int8", "shape": [4, 8],
       "placements": {"a": "Shard(1)", "b": "Shard(0)"}},
      {"name": "u", "dtype": "int8", "shape": [8], "placements": {"a": "Shard(0)"}}]})json");
  const auto groups = internal::tensor_groups_of(job, 50, [](auto, const Box&) { return -1; });
  ASSERT_TRUE(groups.ok());
  ASSERT_EQ(groups->size(), 3U);
  EXPECT_EQ((*groups)[0].chunks.size(), 32U);
  EXPECT_EQ((*groups)[0].chunks.back().rank, 31);
  EXPECT_TRUE((*groups)[1].chunks.empty()) << "18 are left";
  EXPECT_EQ((*groups)[1].chunk_count, 32U);
  EXPECT_EQ((*groups)[2].chunks.size(), 8U);
  EXPECT_EQ((*groups)[2].chunks[0].holders, 4U);
}

TEST(EstimateJson, EstimatesTheTimeFromTheSlowerLimit) {
  EstimateOptions options;
  const JobDescription job = read(R"json({"schema": 1, "ranks": 2,
    "tensors": [{"name": "w", "dtype": "int8", "shape": [1000000]}]})json");
  const auto text = [&] { return estimate_json(simulate_save(job, options)->estimate); };
  EXPECT_NE(text().find("\"time\":null"), std::string::npos);
  options.rank_bytes_per_second = 1000000;  // one rank writes the tensor
  EXPECT_NE(text().find("\"time\":{\"seconds\":1,\"limit\":\"rank\""), std::string::npos) << text();
  options.total_bytes_per_second = 500000;
  EXPECT_NE(text().find("\"time\":{\"seconds\":2,\"limit\":\"total\""), std::string::npos)
      << text();
}

}  // namespace
}  // namespace shardwright::estimate

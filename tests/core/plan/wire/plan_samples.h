// SPDX-License-Identifier: Apache-2.0
//
// One small plan of each kind, with every field set.
#pragma once

#include <string>
#include <vector>

#include "core/plan/describe/builder.h"
#include "core/plan/describe/replica_digests.h"
#include "core/plan/load/make_load_plan.h"
#include "core/plan/wire/wire.h"
#include "tests/core/plan/described.h"
#include "tests/core/plan/wire/plan_kind.h"
#include "tests/core/plan/world.h"

namespace shardwright::plan::test {

inline Digest128 sample_digest(int first) {
  Digest128 digest{};
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::byte>(first + static_cast<int>(i));
  return digest;
}

inline std::vector<State> sample_states() {
  std::vector<State> states;
  for (int64_t r = 0; r < 2; ++r) {
    states.push_back(state_of(
        {{"w", DType::kBfloat16, {4, 6}, {box({2 * r, 0}, {2, 6})}},
         {"cube",
          DType::kInt8,
          {2, 2, 2},
          {box({0, 0, r}, {1, 2, 1}), box({1, 0, r}, {1, 1, 1}), box({1, 1, r}, {1, 1, 1})}},
         whole("scale", {}),
         whole("rng", {3}, EntryKind::kRankLocal)},
        {{"step", "7"}, {"loader", "state", EntryKind::kRankLocal}}));
  }
  return states;
}

inline LocalPlan sample_local_save() {
  ReplicaDigests digests;
  digests.tensors = {Digest128{}, Digest128{}, sample_digest(1), Digest128{}};
  digests.objects = {sample_digest(7), Digest128{}};
  SaveRules rules;
  rules.kinds = {{"rng*", EntryKind::kRankLocal}};
  Result<LocalPlan> plan = make_local_plan(sample_states()[1], rules, {1, 2}, digests);
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return *std::move(plan);
}

inline GlobalSavePlan sample_global_save() {
  return planned(sample_states());
}

inline WriteList sample_write_list() {
  const PlannedSave plan = planned(sample_states());
  WriteList list;
  list.rank = 1;
  list.world_size = static_cast<int32_t>(plan.rank_count());
  list.generation = plan.generation;
  list.plan_digest = plan.plan_digest;
  list.items = plan.lists[1].items;
  return list;
}

// What two ranks describe and merge: an object between tensors, an order, attributes, a mark.
inline LocalPlan sample_described(int32_t rank) {
  Listed first = shard("w", {4, 6}, {2 * rank, 0}, {2, 6});
  first.attribute = "of w";
  Listed cube = {"cube", {2, 2, 2}, {box({0, rank, 0}, {2, 1, 1}), box({0, rank, 1}, {2, 1, 1})}};
  cube.secondary = rank == 1;
  const Arrays arrays({first, object("step"), cube, tensor("scale", {})}, {1, 0, 4, 2, 3});
  DescribeRules rules;
  rules.rank = rank;
  rules.world_size = 2;
  rules.agreement = "mode=test\n";
  Result<LocalPlan> plan = describe_local(arrays.arrays(), rules);
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return *std::move(plan);
}

// The merged descriptions of two ranks.
inline std::vector<std::byte> sample_merged_described() {
  std::vector<PlanBytes> plans;
  for (int32_t rank = 0; rank < 2; ++rank) plans.push_back(*encode(sample_described(rank)));
  const Result<PlanParts> parts = merged(plans, rules_of(Preset::kTorch, OwnerRule::kExact));
  EXPECT_TRUE(parts.ok()) << parts.status().to_string();
  return {parts->part(0).begin(), parts->part(0).end()};
}

inline LoadPlan sample_load() {
  Holding other = whole("w", {4, 6});
  other.dtype = DType::kFloat32;
  const State wanted = state_of(
      {other, {"cube", DType::kInt8, {2, 2, 2}, {box({0, 0, 0}, {2, 1, 2})}}, whole("new", {1})},
      {{"step", ""}});
  LoadRules rules;
  rules.cast = CastRule::kAllow;
  rules.missing = MissingRule::kReport;
  Result<LoadPlan> plan = make_load_plan(wanted, sample_global_save().catalog, rules, 0);
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  plan->generation = kGeneration;
  return *std::move(plan);
}

inline WriteResult sample_write_result() {
  WriteResult result;
  result.rank = 3;
  result.generation = kGeneration;
  result.plan_digest = sample_digest(2);
  result.has_file = true;
  result.file_bytes = 9000;
  result.index_position = 8192;
  result.index_bytes = 680;
  result.index_digest = sample_digest(3);
  result.payload_bytes = 8000;
  result.directory_sync_supported = false;
  return result;
}

inline WantList sample_want_list() {
  WantList list;
  list.rank = 2;
  list.world_size = 4;
  list.node = 2;
  list.generation = kGeneration;
  list.round_bytes = 1 << 20;
  list.blocks = {{0, 4096}, {4096, 1 << 20}, {5 << 20, 17}};
  return list;
}

inline ExchangePlan sample_exchange() {
  ExchangePlan plan;
  plan.rank = 2;
  plan.world_size = 4;
  plan.generation = kGeneration;
  plan.span_bytes = 1 << 20;
  plan.routes = {{2, Route::kStored, 0, 2}, {}, {2, 0, 1, 0}};
  plan.targets = {0, 3};
  plan.rounds = {0, 1, 5, 6};
  return plan;
}

inline LocalPlan sample_by_layouts() {
  const Mesh mesh{{2, 2}, {"dp", "tp"}, {}};
  const Result<std::shared_ptr<const Layout>> layout =
      Layout::create(mesh, {{PlacementKind::kShard, 0, 0}, {PlacementKind::kShard, 1, 0}});
  EXPECT_TRUE(layout.ok()) << layout.status().to_string();
  Result<DescriptionBuilder> builder = DescriptionBuilder::create({}, "mode=test\n", {1, 4});
  EXPECT_TRUE(builder.ok()) << builder.status().to_string();
  const Dims matrix{4, 6};
  const Dims vector{5};
  const std::vector<Box> ragged = {box({1}, {2}), box({4}, {1})};
  std::vector<Status> added;
  added.push_back(
      builder->add_sharded({"w", "[\"w\"]", DType::kBfloat16, EntryKind::kAuto, matrix}, **layout));
  added.push_back(
      builder->add_whole({"scale", "", DType::kFloat32, EntryKind::kAuto, {}, sample_digest(4)}));
  added.push_back(builder->add_boxes(
      {"ragged", "", DType::kInt8, EntryKind::kSharded, vector, sample_digest(6)}, ragged));
  added.push_back(builder->add_whole({"rng", "", DType::kInt64, EntryKind::kRankLocal, vector}));
  added.push_back(
      builder->add_object({"step", "", "application/json", EntryKind::kAuto, 7, sample_digest(5)}));
  added.push_back(
      builder->add_object({"loader", "", "application/octet-stream", EntryKind::kRankLocal, 9}));
  for (const Status& status : added) EXPECT_TRUE(status.ok()) << status.to_string();
  Result<LocalPlan> plan = builder->finish();
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return *std::move(plan);
}

struct Sample {
  std::string name;
  PlanKind kind = PlanKind::kLocalSave;
  std::vector<std::byte> bytes;
};

template <typename Plan>
std::vector<std::byte> encoded(const Plan& plan) {
  Result<std::vector<std::byte>> bytes = encode(plan);
  EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
  return bytes.ok() ? *std::move(bytes) : std::vector<std::byte>();
}

inline std::vector<Sample> all_samples() {
  return {{"local_save", PlanKind::kLocalSave, encoded(sample_local_save())},
          {"write_list", PlanKind::kWriteList, encoded(sample_write_list())},
          {"load", PlanKind::kLoad, encoded(sample_load())},
          {"write_result", PlanKind::kWriteResult, encoded(sample_write_result())},
          {"merged_save", PlanKind::kMergedSave, encoded(sample_global_save())},
          {"local_save.described", PlanKind::kLocalSave, encoded(sample_described(1))},
          {"merged_save.described", PlanKind::kMergedSave, sample_merged_described()},
          {"description", PlanKind::kDescription, encoded(sample_by_layouts().description)},
          {"local_part", PlanKind::kLocalPart, encoded(sample_by_layouts().part)},
          {"want_list", PlanKind::kWantList, encoded(sample_want_list())},
          {"exchange", PlanKind::kExchange, encoded(sample_exchange())},
          {"local_save.by_layouts", PlanKind::kLocalSave, encoded(sample_by_layouts())}};
}

// Decodes with the function of that kind.
inline Status decode_status(PlanKind kind, std::span<const std::byte> buffer) {
  switch (kind) {
    case PlanKind::kLocalSave:
      return decode<LocalPlan>(buffer).status();
    case PlanKind::kWriteList:
      return decode<WriteList>(buffer).status();
    case PlanKind::kLoad:
      return decode<LoadPlan>(buffer).status();
    case PlanKind::kWriteResult:
      return decode<WriteResult>(buffer).status();
    case PlanKind::kMergedSave:
      return decode<GlobalSavePlan>(buffer).status();
    case PlanKind::kDescription:
      return decode<Description>(buffer).status();
    case PlanKind::kWantList:
      return decode<WantList>(buffer).status();
    case PlanKind::kExchange:
      return decode<ExchangePlan>(buffer).status();
    case PlanKind::kLocalPart:
      return decode<LocalPart>(buffer).status();
  }
  return internal_error("no such kind");
}

}  // namespace shardwright::plan::test
